/* Requests whose profiles for macOS are compared and decided: a row each. A path that ends in a slash is a directory.
 */
#pragma once
#include "profile/seatbelt.h"

struct seatbelt_request {
	const char *name;
	const char *workspace;                  /* NULL: /Users/ada/project */
	enum view view;
	enum network_mode network;
	unsigned port;
	bool no_spawn;
	const char *proxy;                      /* cordon-proxy itself, which lies there; the rest does not count */
	const char *reads[5], *writes[4], *masked[4], *protect[4], *programs[3], *sockets[2], *devices[2], *tty;
};

#define WORK "/Users/ada/project"
#define DATA "/Users/ada/.local/share/cordon"

static const struct seatbelt_request seatbelt_requests[] = {
	{ .name = "standard" },
	{ .name = "no-spawn", .no_spawn = true },
	{ .name = "own-workspace", .workspace = DATA "/workspaces/0123456789abcdef" },
	{ .name = "own-workspace-names",
	  .workspace = DATA "/workspaces/0123456789abcdef",
	  .masked = { DATA "/workspaces/0123456789abcdef/.env" },
	  .protect = { DATA "/workspaces/0123456789abcdef/.git/hooks" } },
	{ .name = "var-folders", .workspace = "/var/folders/ab/T/work" },
	{ .name = "tmp", .workspace = "/tmp/work" },
	{ .name = "read-directory", .reads = { "/srv/data/" } },
	{ .name = "read-file", .reads = { "/srv/data/one.csv" } },
	{ .name = "read-etc", .reads = { "/etc/postfix/", "/etc/sudoers" } },
	{ .name = "reads",
	  .reads = { "/srv/data/", "/Users/ada/models/", "/Users/ada/notes.txt", "/Volumes/disk/set/" } },
	{ .name = "write-directory", .writes = { "/srv/out/" } },
	{ .name = "write-file", .writes = { "/var/log/tool.log" } },
	{ .name = "write-in-read", .reads = { "/srv/data/" }, .writes = { "/srv/data/out/" } },
	{ .name = "read-in-write",
	  .reads = { "/srv/out/kept/", "/srv/out/a/b/one.csv", "/srv/out/both/" },
	  .writes = { "/srv/out/", "/srv/out/kept/again/", "/srv/out/both/" } },
	{ .name = "read-home", .reads = { "/Users/ada/" } },
	{ .name = "masked", .masked = { WORK "/.env", WORK "/deploy/.ssh/" } },
	{ .name = "protected", .protect = { WORK "/.git/config", WORK "/.git/hooks", WORK "/a/b/.git/config" } },
	{ .name = "names",
	  .masked = { WORK "/secrets/key.pem" },
	  .protect = { WORK "/.git/hooks" },
	  .writes = { WORK "/secrets/" } },
	{ .name = "masked-in-read", .reads = { "/Users/ada/" }, .masked = { "/Users/ada/.ssh/", "/Users/ada/.netrc" } },
	{ .name = "masked-in-tmp",
	  .workspace = "/tmp/work",
	  .masked = { "/tmp/work/.env" },
	  .protect = { "/tmp/work/.git/hooks" } },
	{ .name = "programs", .programs = { "/usr/bin/python3" } },
	{ .name = "programs-no-spawn", .programs = { "/usr/bin/python3", "/opt/homebrew/bin/git" }, .no_spawn = true },
	{ .name = "hosts", .network = NETWORK_HOSTS, .port = 53128 },
	{ .name = "hosts-names", .network = NETWORK_HOSTS, .port = 40001, .masked = { WORK "/.env" } },
	{ .name = "hosts-spawn",
	  .network = NETWORK_HOSTS,
	  .port = 1,
	  .no_spawn = true,
	  .sockets = { "/var/run/service.sock" } },
	{ .name = "proxy", .proxy = "/opt/cordon/bin/cordon-proxy" },
	{ .name = "network", .network = NETWORK_ALL },
	{ .name = "sockets", .sockets = { "/var/run/service.sock" } },
	{ .name = "socket-masked", .sockets = { WORK "/s.sock" }, .masked = { WORK "/agent.sock" } },
	{ .name = "devices", .devices = { "/dev/cu.usbserial" } },
	{ .name = "terminal", .tty = "/dev/ttys042" },
	{ .name = "bare", .view = VIEW_BARE, .reads = { "/usr/lib/", "/bin/" } },
	{ .name = "host-readonly", .view = VIEW_HOST_READONLY, .masked = { "/Users/ada/.aws/" } },
	{ .name = "quotes", .workspace = "/Users/ada/it's \"here\") (allow default" },
};
