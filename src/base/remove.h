/* Removing a tree that may hold anything. */
#pragma once

/* By descriptor, no link followed, no other file system entered, whatever the depth and the modes. 0, or -1 where
 * something could not be removed; that stays. What is not there is removed already. */
int remove_tree(int parent_fd, const char *name);
