/* git's own configuration, which is a protected name: what git changes in it from inside is written by the library
 * where it is harmless, because git replaces the file, and the mount that protects it cannot be replaced. The mount
 * stays the wall; without this every change is refused. `config.lock` is read into memory, judged there, and written
 * to the file in its place. */
#pragma once
#include "base/cleanup.h"
#include "base/error.h"

struct execution;
struct git_broker;

/* If configurations are among the protected names: begins to look after the command's renames. NULL: there is nothing
 * to look after. */
int git_broker_begin(struct execution *execution, struct git_broker **ret_broker, struct cordon_error *err) must_check;
const struct rename_watch *git_broker_renames(const struct git_broker *broker);
void git_broker_free(struct git_broker *broker);
