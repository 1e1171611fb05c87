/* The result as a value. */
#pragma once
#include "api/value.h"

/* NULL when memory is short. */
json_t *result_tree(const struct cordon_result *result);
/* Takes what cordon_result_run() left, and returns its status; where there is a result, as the value of it. */
int result_as_value(int status, struct cordon_result *result, struct cordon_value **ret_value,
                    struct cordon_error *err) must_check;
