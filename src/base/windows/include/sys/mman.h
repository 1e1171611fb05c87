/* A file that nobody else can open and that goes when it is closed. It lies in the user's directory for temporary files,
 * not in memory. */
#pragma once
#define MFD_CLOEXEC 1
int memfd_create(const char *purpose, unsigned flags);
