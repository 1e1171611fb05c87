/* Operations of git in progress (git-progress.h), in each known repository. Both return 0, or -1 when memory is
 * short. */
#pragma once
#include "base/cleanup.h"

struct check;
struct recording;

int progress_record(struct recording *recording) must_check;
int progress_judge(struct check *check) must_check;
