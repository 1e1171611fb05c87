#pragma once
#include <sys/mount.h>
#include <sys/param.h>
