/* The names of all drivers, by the system that has them: for messages, the configuration, help and completion. A test
 * compares those of this system with drivers[]. */
#pragma once

#define CORDON_DRIVERS_LINUX "namespaces landlock bwrap local"
#define CORDON_DRIVERS_MACOS "seatbelt"
#define CORDON_DRIVERS_WINDOWS "windows wsl"

#if defined(__APPLE__)
#define CORDON_DRIVERS CORDON_DRIVERS_MACOS
#define CORDON_DRIVER_DEFAULT "seatbelt"
#define CORDON_DRIVER_HELP "There is no weaker one."
#elif defined(_WIN32)
#define CORDON_DRIVERS CORDON_DRIVERS_WINDOWS
#define CORDON_DRIVER_DEFAULT "windows"
#define CORDON_DRIVER_HELP "wsl runs the command in a distro of cordon's own: see cordon wsl."
#else
#define CORDON_DRIVERS CORDON_DRIVERS_LINUX
#define CORDON_DRIVER_DEFAULT "namespaces"
#define CORDON_DRIVER_HELP "landlock needs no user namespace and holds less; local holds no walls at all."
#endif

/* The default is the system's own, the first of them; the help says how the others differ. What may be named: `auto` is
 * the strongest that holds here, `disabled` runs nothing. */
#define CORDON_DRIVER_WORDS "auto " CORDON_DRIVERS " disabled"
