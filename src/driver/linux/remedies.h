/* What to do where the machine restricts user namespaces. Texts for code that may touch constant memory only. */
#pragma once

#define REMEDY_APPARMOR                                                                                                \
	"on Ubuntu 23.10 or later load cordon's AppArmor profile: `sudo cp PREFIX/share/apparmor/extra-"               \
	"profiles/cordon /etc/apparmor.d/cordon && sudo apparmor_parser -r /etc/apparmor.d/cordon`, "                  \
	"PREFIX being where cordon is installed (/usr, where the Debian package has copied it already)"
