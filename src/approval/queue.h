/* The files of the queue (approvals.h): what its parts share. */
#pragma once
#include "approval/approvals.h"

#define QUEUE_SETTLED "settled"
#define QUEUE_CARD "card.json"
#define QUEUE_ANSWER "answer.json"
#define QUEUE_NEW_PREFIX ".new-"
#define QUEUE_ANSWER_PREFIX ".answer-"

/* The error of a queue that does not work; -1. */
int queue_refuse(int number, const char *subject, const char *what, struct cordon_error *err);
/* The directory of all questions. *ret_fd stays as it is where there is none and none is to be made. */
int queue_open(const char *data_dir, bool make, int *ret_fd, struct cordon_error *err) must_check;
/* The caller's own directory, or a negative errno. */
int queue_open_directory(int parent_fd, const char *name) must_check;
bool queue_is_id(const char *name);
/* The names in a directory that `wanted` likes, sorted; none where it cannot be read. */
struct strings queue_list(struct arena *arena, int parent_fd, const char *name, bool (*wanted)(const char *name));

/* 0, or a negative errno: -EBADMSG where it is not what cordon wrote; -EPROTO where a newer version did, and only its
 * id, session and hash are known. */
int queue_read_question(struct arena *arena, int card_fd, const char *id,
                        struct approval_question *ret_question) must_check;
/* *ret_found is false where there is none; one that cannot be read is void. -1: memory is short. */
int queue_read_answer(struct arena *arena, int card_fd, struct approval_answer *ret_answer, bool *ret_found) must_check;
/* 0, or a negative errno: -EEXIST where there is one already. */
int queue_link_answer(int queue_fd, int card_fd, const struct approval_answer *answer) must_check;
