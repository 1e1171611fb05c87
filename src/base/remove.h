/* Removing a tree that may hold anything. */
#pragma once

/* By descriptor, no link followed, bounded in depth. What cannot be removed stays. */
void remove_tree(int parent_fd, const char *name);
