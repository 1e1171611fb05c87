/* The names of all drivers, by the system that has them: for messages, the configuration, help and completion. A test
 * compares those of this system with drivers[]. */
#pragma once

#define CORDON_DRIVERS_LINUX "namespaces landlock bwrap local"
#define CORDON_DRIVERS_MACOS "seatbelt"
#define CORDON_DRIVERS_WINDOWS "windows wsl"

#if defined(__APPLE__)
#define CORDON_DRIVERS CORDON_DRIVERS_MACOS
#define CORDON_DRIVER_DEFAULT "seatbelt"
#elif defined(_WIN32)
#define CORDON_DRIVERS CORDON_DRIVERS_WINDOWS
#define CORDON_DRIVER_DEFAULT "windows"
#else
#define CORDON_DRIVERS CORDON_DRIVERS_LINUX
#define CORDON_DRIVER_DEFAULT "namespaces"
#endif

/* The default is the system's own, the first of them. What may be named: `auto` is the strongest that holds here,
 * `disabled` runs nothing. */
#define CORDON_DRIVER_WORDS "auto " CORDON_DRIVERS " disabled"
