/* See seatbelt.h. Text in, text out: nothing here asks the system. */
#include "profile/seatbelt.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

/* ---- what every command has -------------------------------------------------------------------------------------- */

/* Starting, ending, and looking at itself; asking what machine this is; who the user is.
 *
 * Version 1 is reported to allow some operations that the default and a wildcard do not take back, only their own names
 * do. Of these, the ones by which files outside of the grants could be linked, copied, looked for or executed, or other
 * processes looked at, are denied by name; what reads, writes or maps allows them again by name. One name that a system
 * does not know would refuse the whole text: these are known from macOS 14 on. */
static const char basics[] =
	"(version 1)\n"
	"(deny default)\n"
	"(deny file-clone file-link file-map-executable file-test-existence fs-snapshot-mount)\n"
	"(deny process-info*)\n"
	"(allow process-info* (target same-sandbox))\n"
	"(allow signal (target same-sandbox))\n"
	"(allow sysctl-read\n"
	"  (sysctl-name-prefix \"hw.\")\n"
	"  (sysctl-name \"kern.argmax\") (sysctl-name \"kern.hostname\") (sysctl-name \"kern.maxfilesperproc\")\n"
	"  (sysctl-name \"kern.ngroups\") (sysctl-name \"kern.osproductversion\") (sysctl-name \"kern.osrelease\")\n"
	"  (sysctl-name \"kern.ostype\") (sysctl-name \"kern.osvariant_status\") (sysctl-name \"kern.osversion\")\n"
	"  (sysctl-name \"kern.secure_kernel\") (sysctl-name \"kern.sysv.semmni\")\n"
	"  (sysctl-name \"kern.usrstack64\") (sysctl-name \"kern.version\")\n"
	"  (sysctl-name \"sysctl.proc_cputype\") (sysctl-name \"vm.loadavg\"))\n"
	"(allow mach-lookup (global-name \"com.apple.system.opendirectoryd.libinfo\"))\n"
	/* What Python's processes of one program wait for each other with. */
	"(allow ipc-posix-sem (ipc-posix-name-regex #\"^/mp-\") (ipc-posix-name-regex #\"^/loky-\"))\n";

/* Names to addresses, and the system's settings of that. */
static const char name_services[] =
	"(allow network-outbound (literal \"/private/var/run/mDNSResponder\"))\n"
	"(allow mach-lookup\n"
	"  (global-name \"com.apple.SystemConfiguration.configd\")\n"
	"  (global-name \"com.apple.SystemConfiguration.DNSConfiguration\") (global-name \"com.apple.networkd\"))\n";

/* Knowingly not for a network of listed hosts: trustd fetches what a certificate names, from any host and outside of
 * the sandbox, so a command could send with it. */
static const char certificate_services[] =
	"(allow mach-lookup\n"
	"  (global-name \"com.apple.SecurityServer\")\n"
	"  (global-name \"com.apple.trustd\") (global-name \"com.apple.trustd.agent\"))\n";

/* What of the system programs need: the loader and what it maps, shells and tools, time zones, certificates. */
static const struct {
	const char *path;
	bool is_file;
} system_view[] = {
	{ "/", true },                                          /* the loader lists it */
	{ "/System/Library", false },                           /* frameworks */
	{ "/System/Cryptexes", false },
	{ "/System/Volumes/Preboot/Cryptexes", false },         /* the loader's cache */
	{ "/Library/Apple", false },
	{ "/Library/Developer/CommandLineTools", false },       /* git, make, clang */
	{ "/Applications/Xcode.app/Contents/Developer", false },
	{ "/usr/lib", false },
	{ "/usr/libexec", false },
	{ "/usr/share", false },
	{ "/usr/bin", false },
	{ "/usr/sbin", false },
	{ "/usr/local", false },
	{ "/bin", false },
	{ "/sbin", false },
	{ "/opt", false },                                      /* Homebrew */
	{ "/private/etc/ssl", false },
	{ "/private/etc/hosts", true },
	{ "/private/etc/localtime", true },
	{ "/private/etc/passwd", true },
	{ "/private/etc/group", true },
	{ "/private/etc/protocols", true },
	{ "/private/etc/services", true },
	{ "/private/etc/resolv.conf", true },
	{ "/private/etc/shells", true },
	{ "/private/var/db/timezone", false },
	{ "/private/var/select", false },                       /* which shell is sh */
	{ "/private/var/run/resolv.conf", true },
};

static const char *const system_links[] = { "/etc", "/tmp", "/var" };
static const char *const system_devices[] = { "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom",
	                                      "/dev/dtracehelper" };

const char *seatbelt_canonical(struct arena *arena, const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(system_links); i++)
		if (path_within(path, system_links[i]))
			return arena_printf(arena, "/private%s", path);
	return path;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

struct writing {
	struct arena *arena;
	struct seatbelt *out;
	size_t length, room, capacity;
	char *text;
	bool failed;
	struct strings ancestors;               /* seen */
};

static void put(struct writing *writing, const char *text)
{
	size_t length = strlen(text);
	if (writing->failed)
		return;
	if (writing->length + length + 1 > writing->room) {
		size_t room = 2 * (writing->room + length + 1024);
		char *grown = arena_alloc(writing->arena, room);
		if (!grown) {
			writing->failed = true;
			return;
		}
		if (writing->length)
			memcpy(grown, writing->text, writing->length);
		writing->text = grown;
		writing->room = room;
	}
	memcpy(writing->text + writing->length, text, length + 1);
	writing->length += length;
}

/* The parameter that has this value; one that is new where there is none. */
static const char *parameter(struct writing *writing, const char *value)
{
	struct seatbelt *out = writing->out;
	for (size_t i = 0; i < out->count; i++)
		if (!strcmp(out->parameters[i].value, value))
			return out->parameters[i].name;
	if (out->count == writing->capacity) {
		size_t capacity = writing->capacity ? 2 * writing->capacity : 32;
		struct seatbelt_parameter *grown = arena_alloc(writing->arena, capacity * sizeof(*grown));
		if (!grown)
			return NULL;
		if (out->count)
			memcpy(grown, out->parameters, out->count * sizeof(*grown));
		out->parameters = grown;
		writing->capacity = capacity;
	}
	const char *name = arena_printf(writing->arena, "P%zu", out->count);
	out->parameters[out->count++] = (struct seatbelt_parameter){ name, value };
	return name;
}

static void rule(struct writing *writing, const char *action, const char *kind, const char *path)
{
	const char *canonical = seatbelt_canonical(writing->arena, path);
	const char *name = canonical ? parameter(writing, canonical) : NULL;
	if (!name) {
		writing->failed = true;
		return;
	}
	put(writing, "(");
	put(writing, action);
	put(writing, " (");
	put(writing, kind);
	put(writing, " (param \"");
	put(writing, name);
	put(writing, "\")))\n");
}

static const char *kind_of(bool is_file)
{
	return is_file ? "literal" : "subpath";
}

/* The directories above it, for this action; each once for an action. */
static void above(struct writing *writing, const char *action, const char *path, const char *until)
{
	const char *canonical = seatbelt_canonical(writing->arena, path);
	for (size_t length = canonical ? strlen(canonical) : 0; length > 1;) {
		while (length > 1 && canonical[length - 1] != '/')
			length--;
		while (length > 1 && canonical[length - 1] == '/')
			length--;
		const char *directory = arena_strndup(writing->arena, canonical, length);
		const char *mark = directory ? arena_printf(writing->arena, "%s %s", action, directory) : NULL;
		if (!mark) {
			writing->failed = true;
			return;
		}
		if (until && !path_within(directory, until))
			return;
		bool seen = false;
		for (size_t i = 0; i < writing->ancestors.count && !seen; i++)
			seen = !strcmp(writing->ancestors.items[i], mark);
		if (seen)
			continue;
		if (strings_add(writing->arena, &writing->ancestors, mark) < 0)
			writing->failed = true;
		rule(writing, action, "literal", directory);
	}
	writing->failed |= !canonical;
}

/* ---- rule groups ------------------------------------------------------------------------------------------------- */

/* Linux's own, and what add_system() has said already. */
static bool is_known(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(system_devices); i++)
		if (!strcmp(path, system_devices[i]))
			return true;
	return path_within(path, "/proc") || !strcmp(path, "/dev/full") || !strcmp(path, "/dev/tty");
}

static void add_system(struct writing *writing, const struct profile *profile)
{
	char line[160];
	bool start = !profile->programs.count;
	for (size_t i = 0; i < ARRAY_SIZE(system_links); i++) {
		snprintf(line, sizeof(line), "(allow file-read* file-test-existence (literal \"%s\"))\n",
		         system_links[i]);
		put(writing, line);
	}
	for (size_t i = 0; i < ARRAY_SIZE(system_devices); i++) {
		snprintf(line, sizeof(line),
		         "(allow file-read* file-test-existence file-write-data file-ioctl (literal \"%s\"))\n",
		         system_devices[i]);
		put(writing, line);
	}
	/* Opening one of these gives what the process has open already. */
	put(writing, "(allow file-read* file-test-existence file-write-data file-ioctl (subpath \"/dev/fd\") (literal "
	             "\"/dev/stdin\")\n"
	             "  (literal \"/dev/stdout\") (literal \"/dev/stderr\"))\n");
	for (size_t i = 0; profile->view != VIEW_BARE && i < ARRAY_SIZE(system_view); i++) {
		bool is_file = system_view[i].is_file;
		snprintf(line, sizeof(line),
		         "(allow file-read* file-test-existence file-map-executable%s (%s \"%s\"))\n",
		         start && !is_file ? " process-exec*" : "", kind_of(is_file), system_view[i].path);
		put(writing, line);
	}
	/* The names on the way to what is there can be passed. */
	put(writing, "(allow file-read-metadata file-test-existence (literal \"/private\") (literal \"/private/etc\") "
	             "(literal \"/private/var\")\n"
	             "  (literal \"/private/tmp\") (literal \"/usr\") (literal \"/System\") (literal \"/Library\"))\n");
}

static void add_rule(struct writing *writing, const struct landlock_rule *one)
{
	char action[160];
	if (is_known(one->path))
		return;
	/* A device may be used, and not replaced. */
	bool device = one->access & LANDLOCK_USE;
	snprintf(action, sizeof(action), "allow%s%s%s%s",
	         one->access & (LANDLOCK_SEE | LANDLOCK_USE) ? " file-read* file-test-existence" : "",
	         one->access & LANDLOCK_CHANGE ? " file-write* file-clone file-link" :
	         device                        ? " file-write-data file-ioctl" :
	                                         "",
	         one->access & LANDLOCK_START ? " process-exec*" : "",
	         one->access & LANDLOCK_SEE && !device ? " file-map-executable" : "");
	rule(writing, action, kind_of(one->is_file), one->path);
	above(writing, "allow file-read-metadata file-test-existence", one->path, NULL);
}

static void add_rules(struct writing *writing, const struct profile *profile)
{
	for (size_t i = 0; i < profile->landlock.count; i++)
		add_rule(writing, &profile->landlock.rules[i]);
}

static void add_programs(struct writing *writing, const struct profile *profile)
{
	for (size_t i = 0; i < profile->programs.count; i++) {
		rule(writing, "allow process-exec* file-read* file-test-existence file-map-executable", "literal",
		     profile->programs.items[i]);
		above(writing, "allow file-read-metadata file-test-existence", profile->programs.items[i], NULL);
	}
	put(writing, profile->spawn ? "(allow process-fork)\n" : "(deny process-fork)\n");
}

static int add_network(struct writing *writing, const struct profile *profile, const struct seatbelt_facts *facts)
{
	char line[128];
	switch (profile->network) {
	case NETWORK_NONE:
		break;
	case NETWORK_HOSTS:
		if (!facts->proxy_port)
			return -2;
		/* "localhost" is every address of this machine's loopback: at that of IPv6, and by UDP, another
		 * program may have the port. */
		snprintf(line, sizeof(line), "(allow network-outbound (remote tcp4 \"localhost:%u\"))\n",
		         facts->proxy_port);
		put(writing, line);
		break;
	case NETWORK_ALL:
		put(writing, "(allow system-socket)\n"
		             "(allow network-outbound (remote ip))\n");
		put(writing, name_services);
		/* The proxy's listener was made before. */
		put(writing, facts->is_proxy ? "(allow network-inbound (local ip \"localhost:*\"))\n" :
		                               "(allow network-inbound network-bind (local ip))\n");
		if (!facts->is_proxy)
			put(writing, certificate_services);
		break;
	case NETWORK_MODE_MAX:
		return -1;
	}
	for (size_t i = 0; i < profile->sockets.count; i++) {
		const struct place *socket = &profile->sockets.items[i];
		rule(writing, "allow network-outbound file-read* file-test-existence file-write-data",
		     kind_of(!socket->is_directory), socket->path);
		above(writing, "allow file-read-metadata file-test-existence", socket->path, NULL);
	}
	if (facts->tty)
		rule(writing, "allow file-read* file-test-existence file-write-data file-ioctl", "literal", facts->tty);
	return 0;
}

/* The directories between a name and what may be written stay where they are; else the name would have another path. */
static void pin_parents(struct writing *writing, const struct profile *profile, const char *path)
{
	for (size_t i = 0; i < profile->landlock.count; i++) {
		const struct landlock_rule *one = &profile->landlock.rules[i];
		if (!(one->access & LANDLOCK_CHANGE) || !path_within(path, one->path))
			continue;
		const char *root = seatbelt_canonical(writing->arena, one->path);
		if (root)
			above(writing, "deny file-write-unlink", path, root);
		writing->failed |= !root;
	}
}

/* Nothing of cordon's own data, but for what of it is the command's. */
static void add_data(struct writing *writing, const struct profile *profile)
{
	if (!profile->data_dir || !*profile->data_dir)
		return;
	rule(writing, "deny file-read* file-test-existence file-write* file-clone file-link process-exec*", "subpath",
	     profile->data_dir);
	writing->ancestors.count = 0;
	for (size_t i = 0; i < profile->landlock.count; i++) {
		const struct landlock_rule *one = &profile->landlock.rules[i];
		bool own = path_within(one->path, profile->data_dir) && strcmp(one->path, profile->data_dir);
		if (own && one->access & LANDLOCK_CHANGE)
			add_rule(writing, one);
	}
}

/* Does another path that is granted with this access lie around it, or with `itself` the very path? */
static bool is_inside(const struct profile *profile, const struct landlock_rule *one, bool change, bool itself)
{
	for (size_t i = 0; i < profile->landlock.count; i++) {
		const struct landlock_rule *other = &profile->landlock.rules[i];
		bool is_same = !strcmp(one->path, other->path), changes = other->access & LANDLOCK_CHANGE;
		if (changes == change && (itself ? is_same : !is_same && path_within(one->path, other->path)))
			return true;
	}
	return false;
}

/* Where grants lie in each other the narrowest counts: what is granted for reading alone, in what may be written, stays
 * as it is; what may be written in that again, does not. */
static void add_kept(struct writing *writing, const struct profile *profile)
{
	const struct landlock_plan *plan = &profile->landlock;
	size_t *sorted = arena_alloc(writing->arena, (plan->count + 1) * sizeof(*sorted));
	if (!sorted) {
		writing->failed = true;
		return;
	}
	for (size_t i = 0; i < plan->count; i++) {
		size_t j = i;
		for (; j && strlen(plan->rules[sorted[j - 1]].path) > strlen(plan->rules[i].path); j--)
			sorted[j] = sorted[j - 1];
		sorted[j] = i;
	}
	writing->ancestors.count = 0;
	for (size_t i = 0; i < plan->count; i++) {
		const struct landlock_rule *one = &plan->rules[sorted[i]];
		bool change = one->access & LANDLOCK_CHANGE, device = one->access & LANDLOCK_USE;
		if (device || !is_inside(profile, one, true, false))
			continue;
		if (!change && !is_inside(profile, one, true, true)) {
			rule(writing, "deny file-write* file-clone file-link", kind_of(one->is_file), one->path);
			pin_parents(writing, profile, one->path);
		} else if (change && is_inside(profile, one, false, false) &&
		           !(profile->data_dir && path_within(profile->data_dir, one->path))) {
			add_rule(writing, one);
		}
	}
	writing->ancestors.count = 0;
}

static void add_names(struct writing *writing, const struct profile *profile)
{
	for (size_t i = 0; i < profile->protect.count; i++) {
		rule(writing, "deny file-write* file-clone file-link", "subpath", profile->protect.items[i]);
		pin_parents(writing, profile, profile->protect.items[i]);
	}
	for (size_t i = 0; i < profile->masked.count; i++) {
		rule(writing,
		     "deny file-read* file-test-existence file-write* file-clone file-link file-map-executable "
		     "process-exec* network-outbound",
		     kind_of(!profile->masked.items[i].is_directory), profile->masked.items[i].path);
		pin_parents(writing, profile, profile->masked.items[i].path);
	}
}

int seatbelt_render(struct arena *arena, const struct profile *profile, const struct seatbelt_facts *facts,
                    struct seatbelt *ret_seatbelt)
{
	struct seatbelt out = { 0 };
	struct writing writing = { .arena = arena, .out = &out };
	put(&writing, basics);
	add_system(&writing, profile);
	add_rules(&writing, profile);
	add_programs(&writing, profile);
	int result = add_network(&writing, profile, facts);
	add_data(&writing, profile);
	add_kept(&writing, profile);
	/* What would make another user of it, or another tree. */
	put(&writing, "(deny file-write-setugid file-write-mount file-write-umount)\n");
	add_names(&writing, profile);
	if (result < 0 || writing.failed)
		return result < 0 ? result : -1;
	out.text = writing.text;
	*ret_seatbelt = out;
	return 0;
}

int seatbelt_render_proxy(struct arena *arena, const char *program, struct seatbelt *ret_seatbelt)
{
	static const struct {
		const char *path;
		bool is_file;
	} read[] = {
		{ "/", true },
		{ "/System/Library", false },
		{ "/System/Cryptexes", false },
		{ "/System/Volumes/Preboot/Cryptexes", false },
		{ "/usr/lib", false },
		{ "/private/etc/hosts", true },
		{ "/private/etc/resolv.conf", true },
		{ "/private/var/run/resolv.conf", true },
	};
	struct landlock_rule rules[ARRAY_SIZE(read)];
	struct profile profile = { .network = NETWORK_ALL, .view = VIEW_BARE, .landlock = { .rules = rules } };
	static const struct seatbelt_facts facts = { .is_proxy = true };
	for (size_t i = 0; i < ARRAY_SIZE(read); i++)
		rules[profile.landlock.count++] = (struct landlock_rule){ .path = read[i].path,
			                                                  .access = LANDLOCK_SEE,
			                                                  .is_file = read[i].is_file };
	if (strings_add(arena, &profile.programs, program) < 0)
		return -1;
	return seatbelt_render(arena, &profile, &facts, ret_seatbelt);
}
