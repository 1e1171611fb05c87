/* Judging what commands left in the trees they could write: judge.c looks and judges, judged-record.c keeps the record
 * that is compared with (paths/planted/judged.h). */
#pragma once
#include "paths/trees.h"

/* What looking at a tree takes is not the request's: a command may have left a great deal. */
struct judging {
	struct trees *trees;
	struct tree *tree;
	struct arena arena, behind;             /* of the names as the rules have them; of those that no mask hides */
	struct arena kept;                      /* of the record */
	bool locked;                            /* the tree's record is */
	int64_t since_ns;                       /* judged_since_ns() */
	uint64_t deadline_us;                   /* of opening */
	bool earlier;                           /* the command is an earlier one that was not judged */
	struct judged_record record;            /* what to compare with */
	struct names after;
	bool found;                             /* that is all of them */
	bool complete;                          /* nothing is left to be looked at */
	struct planted planted;
};
void judging_free(struct judging *judging);

/* Looks for names in each tree and judges those that are new or changed. `incomplete` is as in struct git_trees;
 * `items` is filled. -1 when there was no memory to tell. */
int judge_trees(struct judging *all, struct git_tree *items, size_t count, bool incomplete) must_check;

/* When a command has ended: locks the trees' records and reads what to compare with. Afterwards: writes down what was
 * judged, and that nothing is pending any more. */
void judge_compare_with(struct judging *all, size_t count);
void judge_settle(struct judging *all, size_t count);
