/* The configuration: rows (include/cordon-config.def) into one snapshot. Layers: the system's file, the user's, the
 * project's. A key the system's file sets bounds the user's file; the project's file can only narrow what is in force
 * without it. What is wrong is `config_invalid` at FILE:LINE:COLUMN, with the nearest key where one was misspelt. */
#pragma once
#include "base/arena.h"
#include "base/host-watch.h"
#include "base/cleanup.h"
#include "policy/address.h"
#include "policy/capability.h"
#include "policy/rules.h"

#define CONFIG_SYSTEM_FILE "/etc/cordon/config.toml"
#define CONFIG_PROJECT_NAME ".cordon.toml"

enum config_layer { CONFIG_SYSTEM, CONFIG_USER, CONFIG_PROJECT, CONFIG_LAYER_MAX };

/* A name that is not looked up, and one address of it. */
struct static_name {
	const char *name;
	struct address address;
};

struct credential;
struct gateway;

struct config {
	bool enabled;
	const char *driver, *view;              /* NULL: the built-in default */
	bool degrade;                           /* on_unavailable = "degrade" */
	const char *workspace_root;             /* NULL: the data directory's */
	const char *tools_dir;                  /* or NULL */
	enum caches_mode {
		CACHES_OF_SESSION,              /* readable, and what is written is the session's */
		CACHES_OF_WORKSPACE,            /* and what is written is shared by all commands in the workspace */
		CACHES_OFF,
		CACHES_MODE_MAX
	} caches;
	bool choose_toolchains;
	struct strings toolchains;
	struct strings etc;             /* paths beneath /etc that the base view has besides */
	struct capability_set baseline;         /* preset, own lists, limits; normalised */
	struct strings project_deny, project_protect;   /* what of its lists only the project's file asks for */
	struct {
		uint64_t wall_ms, stdout_bytes, stderr_bytes;
		uint64_t job_ms;                /* the time of a job, which may be more than the baseline's */
	} usual;                                /* of a command that asks for nothing of its own; within the
	                                           baseline's */
	struct limits chosen;                   /* of the baseline's limits those that a file sets; 0: none does */
	uint32_t required_limits;               /* 1 << enum cordon_wall: held for the whole tree, or nothing runs */
	const char *cgroup;                     /* where control groups are made, or "none"; NULL: where it can be */
	struct strings read_only;               /* applied after what is writable; absolute */
	struct strings env_pass, env_set;       /* names; NAME=VALUE */
	struct tool_rules rules;
	struct {
		uint64_t timeout_ms;
		unsigned denials_to_pause;      /* 0: never */
		bool own_approver;              /* an approver behind a client does not count */
		bool queue;                     /* `cordon approvals` counts as an approver that can be reached */
	} approval;
	struct {
		const struct address_range *exempt;     /* from what the table of addresses refuses */
		size_t exempt_count;
		struct strings private_hosts;           /* "name:port" that may be at an address of this site */
		struct strings groups;                  /* "group=name:port", besides those of groups.def */
		const struct static_name *names;        /* sorted by nothing; a name may be there several times */
		size_t name_count;
		uint64_t connections, total_connections, connect_ms, idle_ms, header_bytes;
		uint64_t bytes;                         /* 0: any amount */
	} network;
	struct {
		const char *output, *arguments;         /* actions by name; NULL: by how the command is run */
		struct strings block, redact, report;   /* kinds for which it is another */
	} secrets;
	const struct credential *credentials;   /* secrets/credential.h */
	size_t credential_count;
	const struct gateway *gateways;         /* policy/gateway.h */
	size_t gateway_count;
	bool sync_disk;                         /* audit.sync = "disk" */
	/* A file in force that is not what is on the disk now, because that is invalid; said once per change. NULL:
	 * none. */
	const char *note;
};

/* May what serves a network by one go on by the other? Its hosts left aside: which is decided about each. Where keys
 * are read from counts, the keys themselves do not. */
bool config_serves_same(const struct config *one, const struct config *other);

/* What is read when: kept between commands, shared by threads. */
struct config_store;

/* What is kept on disk: the last valid text, for when the file becomes invalid; and what was reported, so that it is
 * reported once. If there is nobody to report to, it remains to be reported. */
enum config_keeping { CONFIG_KEEP, CONFIG_KEEP_NOTHING, CONFIG_KEEP_UNSAID };

/* `only`: this file instead of the system's and the user's; or NULL. Reads nothing yet. `data_dir` is where the last
 * good texts are kept. */
int config_store_open(const char *data_dir, const char *only, struct config_store **ret_store,
                      struct cordon_error *err) must_check;
/* From now on they are watched, in a process that will ask again. */
int config_store_watch(struct config_store *store, struct host_watch *host_watch, struct cordon_error *err) must_check;
void config_store_unref(struct config_store *store);

/* The settings for the next command of this session (NULL: a one-off), in the workspace `workspace_fd` (-1: not known
 * yet: without the project's file). A file that changed is read again; unchanged files cost one stat each, or nothing
 * where they are watched. `mounts` is the version of the watch. The snapshot is the caller's to config_unref(). */
int config_store_take(struct config_store *store, const char *session_id, int workspace_fd, const char *workspace_path,
                      enum config_keeping keeping, uint64_t mounts, const struct config **ret_config,
                      struct cordon_error *err) must_check;
/* What is in force without any file; for probes. */
int config_builtin(const struct config **ret_config, struct cordon_error *err) must_check;
/* One more holder of a snapshot. */
const struct config *config_ref(const struct config *config);
void config_unref(const struct config *config);
