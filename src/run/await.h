/* Processes known by a pidfd, whether they are our children or not. */
#pragma once
#include <stdbool.h>

/* Is it gone, and reaped if that is ours to do? With `wait`: not before it is. */
bool await_gone(int pidfd, bool wait);
