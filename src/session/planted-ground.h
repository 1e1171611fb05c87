/* Grounds: where git looks for a repository if it finds none beneath (planted.h). The root, and every directory that holds a
 * repository that was known, or lies above one. Both return 0, or -1 when memory is short. */
#pragma once
#include "base/cleanup.h"

struct check;
struct recording;

int grounds_record(struct recording *recording) must_check;
int grounds_judge(struct check *check) must_check;
