/* What of /etc may be shown. The rules are about entries called /etc/…; their sources lie in a directory of our own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/public.h"

#include <cmocka.h>

#include "arena-ground.h"

static char base[64];

static const char *at(const char *name)
{
	return arena_printf(&arena, "%s/%s", base, name);
}

static void make_directory(const char *name, mode_t mode)
{
	assert_int_equal(mkdir(at(name), 0700), 0);
	assert_int_equal(chmod(at(name), mode), 0);
}

static void make_file(const char *name, mode_t mode)
{
	FILE *file = fopen(at(name), "w");
	assert_non_null(file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(at(name), mode), 0);
}

static int setup(void **state)
{
	(void)state;
	strcpy(base, "/tmp/host-public-XXXXXX");
	if (!mkdtemp(base))
		return -1;
	return chmod(base, 0755);
}

static int teardown(void **state)
{
	char command[128];
	snprintf(command, sizeof(command), "chmod -R u+rwx %s && rm -rf %s", base, base);
	return system(command) == 0 ? free_arena(state) : -1;
}

static struct host_entries keep(enum host_kind kind, const char *path, const char *source,
                                struct host_watch_set *watches)
{
	struct host_entry *entry = arena_alloc(&arena, sizeof(*entry));
	*entry = (struct host_entry){ .path = path, .source = source, .kind = kind };
	struct host_entries entries = { entry, 1, 1 };
	assert_int_equal(host_public_keep(&arena, watches, &entries), 0);
	return entries;
}

static const struct host_entry *find(const struct host_entries *entries, const char *path)
{
	for (size_t i = 0; i < entries->count; i++)
		if (!strcmp(entries->items[i].path, path))
			return &entries->items[i];
	return NULL;
}

static void assert_shown(const struct host_entries *entries, const char *path, enum host_kind kind)
{
	const struct host_entry *entry = find(entries, path);
	assert_non_null(entry);
	assert_int_equal(entry->kind, kind);
}

static void what_is_all_public_is_shown_as_it_is(void **state)
{
	(void)state;
	make_directory("ssl", 0755);
	make_directory("ssl/certs", 0755);
	make_file("ssl/certs/a.crt", 0644);
	assert_int_equal(symlink("nowhere", at("ssl/certs/link")), 0);
	struct host_entries shown = keep(HOST_DIRECTORY, "/etc/ssl", at("ssl"), NULL);
	assert_int_equal(shown.count, 1);
	assert_shown(&shown, "/etc/ssl", HOST_DIRECTORY);
}

static void what_is_not_public_is_left_out(void **state)
{
	(void)state;
	static const struct { const char *name; mode_t mode;
	} directories[] = {
		{ "ssl", 0755 },       { "ssl/private", 0710 },    { "ssl/listed", 0754 }, { "ssl/entered", 0711 },
		{ "ssl/certs", 0755 }, { "ssl/certs/deep", 0755 }, { "ssl/plain", 0755 },
	};
	static const struct { const char *name; mode_t mode; } files[] = {
		{ "ssl/openssl.cnf", 0644 }, { "ssl/group.key", 0640 }, { "ssl/certs/a.crt", 0444 },
		{ "ssl/certs/deep/own.key", 0600 }, { "ssl/certs/deep/b.crt", 0644 }, { "ssl/plain/c.crt", 0644 },
	};
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		make_directory(directories[i].name, directories[i].mode);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		make_file(files[i].name, files[i].mode);
	assert_int_equal(mkfifo(at("ssl/pipe"), 0666), 0);
	assert_int_equal(symlink("../a.crt", at("ssl/certs/deep/link")), 0);
	struct host_entries shown = keep(HOST_DIRECTORY, "/etc/ssl", at("ssl"), NULL);
	assert_shown(&shown, "/etc/ssl", HOST_PARTS);
	assert_shown(&shown, "/etc/ssl/openssl.cnf", HOST_FILE);
	assert_shown(&shown, "/etc/ssl/certs", HOST_PARTS);
	assert_shown(&shown, "/etc/ssl/certs/a.crt", HOST_FILE);
	assert_shown(&shown, "/etc/ssl/certs/deep", HOST_PARTS);
	assert_shown(&shown, "/etc/ssl/certs/deep/b.crt", HOST_FILE);
	assert_shown(&shown, "/etc/ssl/certs/deep/link", HOST_LINK);
	assert_shown(&shown, "/etc/ssl/plain", HOST_DIRECTORY);
	assert_int_equal(shown.count, 8);
	assert_string_equal(find(&shown, "/etc/ssl/certs/deep/link")->link, "../a.crt");
	assert_string_equal(find(&shown, "/etc/ssl/openssl.cnf")->source, at("ssl/openssl.cnf"));
	assert_int_not_equal(find(&shown, "/etc/ssl/openssl.cnf")->stamp, 0);
}

static void an_entry_itself_must_be_public(void **state)
{
	(void)state;
	make_file("open", 0644);
	make_file("closed", 0640);
	make_directory("closed-directory", 0750);
	make_directory("way", 0744);
	make_file("way/file", 0644);
	assert_int_equal(keep(HOST_FILE, "/etc/hosts", at("open"), NULL).count, 1);
	assert_int_equal(keep(HOST_FILE, "/etc/hosts", at("closed"), NULL).count, 0);
	assert_int_equal(keep(HOST_DIRECTORY, "/etc/pki", at("closed-directory"), NULL).count, 0);
	/* A directory above it that not every user can enter. */
	assert_int_equal(keep(HOST_FILE, "/etc/hosts", at("way/file"), NULL).count, 0);
	assert_int_equal(chmod(at("way"), 0711), 0);
	assert_int_equal(keep(HOST_FILE, "/etc/hosts", at("way/file"), NULL).count, 1);
}

static void links_and_other_places_stay(void **state)
{
	(void)state;
	make_directory("opt", 0700);
	struct host_entries shown = keep(HOST_DIRECTORY, "/opt", at("opt"), NULL);
	assert_shown(&shown, "/opt", HOST_DIRECTORY);
	shown = keep(HOST_LINK, "/etc/localtime", "/usr/share/zoneinfo/UTC", NULL);
	assert_shown(&shown, "/etc/localtime", HOST_LINK);
}

static void what_lies_beyond_a_bound_is_not_shown(void **state)
{
	(void)state;
	const char *path = "deep";
	make_directory(path, 0755);
	for (int i = 0; i < 12; i++) {
		path = arena_printf(&arena, "%s/d", path);
		make_directory(path, 0755);
	}
	make_file(arena_printf(&arena, "%s/file", path), 0644);
	struct host_entries shown = keep(HOST_DIRECTORY, "/etc/fonts", at("deep"), NULL);
	for (size_t i = 0; i < shown.count; i++)
		assert_int_equal(shown.items[i].kind, HOST_PARTS);
	make_directory("many", 0755);
	make_file("many/closed", 0600);
	for (int i = 0; i < 1500; i++)
		make_file(arena_printf(&arena, "many/%d", i), 0644);
	shown = keep(HOST_DIRECTORY, "/etc/fonts", at("many"), NULL);
	assert_true(shown.count > 1000 && shown.count <= 1024);
	assert_null(find(&shown, "/etc/fonts/closed"));
}

/* A later command must not be given what was looked at before a file became private. */
static void a_change_is_told(void **state)
{
	(void)state;
	struct host_watch *host_watch = host_watch_new();
	struct host_watch_set *watches = host_watch_set_new(host_watch);
	make_directory("ssl", 0755);
	make_directory("ssl/certs", 0755);
	make_file("ssl/certs/a.crt", 0644);
	for (int time = 0; time < 2; time++) {
		host_watch_poll(host_watch);
		host_watch_begin(watches, 1);
		assert_int_equal(keep(HOST_DIRECTORY, "/etc/ssl", at("ssl"), watches).count, 1);
	}
	host_watch_poll(host_watch);
	bool stood = host_watch_unchanged(watches, 1);
	assert_int_equal(chmod(at("ssl/certs/a.crt"), 0600), 0);
	host_watch_poll(host_watch);
	assert_false(host_watch_unchanged(watches, 1));
	assert_int_equal(keep(HOST_DIRECTORY, "/etc/ssl", at("ssl"), NULL).count, 2);
	if (!stood)
		print_message("nothing can be watched here\n");
	host_watch_set_free(watches);
	host_watch_free(host_watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_all_public_is_shown_as_it_is, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_not_public_is_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(an_entry_itself_must_be_public, setup, teardown),
		cmocka_unit_test_setup_teardown(links_and_other_places_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(what_lies_beyond_a_bound_is_not_shown, setup, teardown),
		cmocka_unit_test_setup_teardown(a_change_is_told, setup, teardown),
	};
	return cmocka_run_group_tests_name("host-public", tests, NULL, NULL);
}
