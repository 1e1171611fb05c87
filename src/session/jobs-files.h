/* The files of jobs (jobs.h): what its parts share. */
#pragma once
#include "session/jobs.h"

#define JOBS_RECORD "job.json"
#define JOBS_LOCK "lock"
#define JOBS_CONTROL "control"

/* The error of files that do not work; -1. */
int jobs_refuse(int number, const char *subject, const char *what, struct cordon_error *err);
/* -1 with errno. */
int jobs_open_directory(int parent_fd, const char *name) must_check;
/* The directory of the jobs of all sessions, or of one. -1 with errno. */
int jobs_open(const char *data_dir, const char *session_id) must_check;
/* The names in a directory that are `wanted`, sorted; or -1: memory or descriptors are short. */
int jobs_names(struct arena *arena, int parent_fd, bool (*wanted)(const char *name),
               struct strings *ret_names) must_check;
bool jobs_is_id(const char *name);
bool jobs_is_held(int fd);
bool jobs_has_record(int fd);
