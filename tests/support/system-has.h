/* What a case asks for in passing that not every system has: where it has not, that part is left out, and the rest of
 * the case runs. */
#pragma once
#ifdef _WIN32
#define HAS_LINKS 0             /* symbolic links that an ordinary user can make */
#define HAS_SPECIAL_FILES 0     /* fifos, sockets with a path, devices; names of any bytes */
#define HAS_MODES 0             /* bits of a mode but for who may write */
#define HAS_ROOT 0              /* paths that are on no drive */
#define HAS_CASE 0              /* names that differ by case only */
#define HAS_WATCH 0             /* inotify */
#define ROOT_PATH "/c"
#define EACH 10                 /* one in so many of what is tried very often: in wine a call takes long */
#else
#define HAS_LINKS 1
#define HAS_SPECIAL_FILES 1
#define HAS_MODES 1
#define HAS_ROOT 1
#define HAS_CASE 1
#define HAS_WATCH 1
#define ROOT_PATH "/"
#define EACH 1
#endif
