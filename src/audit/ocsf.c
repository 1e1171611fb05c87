/* Rows as OCSF events: see ocsf.h. One table says which class and activity a row is; what each class must have
 * besides is written for all classes alike, from the few members that rows share. */
#include <jansson.h>

#include "audit/ocsf.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/utc.h"
#include "cordon-internal.h"

#define SCHEMA "1.3.0"

enum class {
	BASE_EVENT = 0,
	PROCESS_ACTIVITY = 1007,
	NETWORK_ACTIVITY = 4001,
	APPLICATION_LIFECYCLE = 6002,
	API_ACTIVITY = 6003,
};

static const struct {
	enum class class;
	const char *name, *category;
} classes[] = {
	{ BASE_EVENT, "Base Event", "Uncategorized" },
	{ PROCESS_ACTIVITY, "Process Activity", "System Activity" },
	{ NETWORK_ACTIVITY, "Network Activity", "Network Activity" },
	{ APPLICATION_LIFECYCLE, "Application Lifecycle", "Application Activity" },
	{ API_ACTIVITY, "API Activity", "Application Activity" },
};

/* The first row that fits counts. `member` and `value` narrow it down: NULL is any. */
static const struct mapping {
	const char *kind, *member, *value;
	enum class class;
	unsigned activity;
	const char *activity_name;
	bool failed;
} mappings[] = {
	{ "intent", NULL, NULL, PROCESS_ACTIVITY, 1, "Launch", false },
	{ "result", NULL, NULL, PROCESS_ACTIVITY, 2, "Terminate", false },
	{ "denial", "program", NULL, PROCESS_ACTIVITY, 1, "Launch", true },
	{ "denial", NULL, NULL, API_ACTIVITY, 99, "Other", true },
	{ "limit", NULL, NULL, PROCESS_ACTIVITY, 2, "Terminate", true },
	{ "network", "decision", "denied", NETWORK_ACTIVITY, 5, "Refuse", true },
	{ "network", "decision", "failed", NETWORK_ACTIVITY, 4, "Fail", true },
	{ "network", "open", NULL, NETWORK_ACTIVITY, 1, "Open", false },
	{ "network", NULL, NULL, NETWORK_ACTIVITY, 6, "Traffic", false },
	{ "approval", "outcome", "approved", API_ACTIVITY, 99, "Other", false },
	{ "approval", NULL, NULL, API_ACTIVITY, 99, "Other", true },
	{ "session", "change", "made", API_ACTIVITY, 1, "Create", false },
	{ "session", "change", "removed", API_ACTIVITY, 4, "Delete", false },
	{ "session", NULL, NULL, API_ACTIVITY, 3, "Update", false },
	{ "config", NULL, NULL, API_ACTIVITY, 3, "Update", false },
	{ "begin", NULL, NULL, APPLICATION_LIFECYCLE, 3, "Start", false },
	{ "repair", NULL, NULL, APPLICATION_LIFECYCLE, 99, "Other", true },
	{ NULL, NULL, NULL, BASE_EVENT, 99, "Other", false },
};

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

static int64_t number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static const struct mapping *find_mapping(const json_t *row)
{
	const struct mapping *mapping = mappings;
	for (; mapping->kind; mapping++)
		if (!strcmp(mapping->kind, text_of(row, "row")) &&
		    (!mapping->member || (json_object_get(row, mapping->member) &&
		                          (!mapping->value || !strcmp(mapping->value, text_of(row, mapping->member))))))
			break;
	return mapping;
}

static void write_class(struct json *json, const struct mapping *mapping)
{
	size_t i = 0;
	while (classes[i].class != mapping->class)
		i++;
	json_key_uint(json, "category_uid", mapping->class / 1000);
	json_key_string(json, "category_name", classes[i].category);
	json_key_uint(json, "class_uid", mapping->class);
	json_key_string(json, "class_name", classes[i].name);
	json_key_uint(json, "activity_id", mapping->activity);
	json_key_string(json, "activity_name", mapping->activity_name);
	json_key_uint(json, "type_uid", mapping->class * 100 + mapping->activity);
	json_key_uint(json, "severity_id", mapping->failed ? 3 : 1);
	json_key_string(json, "severity", mapping->failed ? "Medium" : "Informational");
	json_key_uint(json, "status_id", mapping->failed ? 2 : 1);
	json_key_string(json, "status", mapping->failed ? "Failure" : "Success");
}

static void write_product(struct json *json, const char *key)
{
	json_key(json, key);
	json_object_begin(json);
	json_key_string(json, "name", "cordon");
	json_key_string(json, "vendor_name", "cordon");
	json_key_string(json, "version", CORDON_VERSION);
	json_object_end(json);
}

static void write_metadata(struct json *json, const json_t *row)
{
	json_key(json, "metadata");
	json_object_begin(json);
	json_key_string(json, "version", SCHEMA);
	json_key_string(json, "log_name", "cordon ledger");
	json_key_string(json, "event_code", text_of(row, "row"));
	json_key_string(json, "uid", text_of(row, "id"));
	json_key_string(json, "correlation_uid", text_of(row, *text_of(row, "audit_id") ? "audit_id" : "id"));
	json_key_string(json, "original_time", text_of(row, "time"));
	write_product(json, "product");
	json_object_end(json);
}

static void write_actor(struct json *json, const json_t *row)
{
	json_key(json, "actor");
	json_object_begin(json);
	json_key_string(json, "app_name", "cordon");
	if (*text_of(row, "session")) {
		json_key(json, "session");
		json_object_begin(json);
		json_key_string(json, "uid", text_of(row, "session"));
		json_object_end(json);
	}
	json_object_end(json);
}

static void write_process(struct json *json, const json_t *row)
{
	const char *program = text_of(row, "program"), *slash = strrchr(program, '/');
	struct utsname host;
	json_key(json, "process");
	json_object_begin(json);
	json_key_string(json, "name", slash ? slash + 1 : program);
	json_key_string(json, "uid", text_of(row, "id"));
	if (*program == '/') {
		json_key(json, "file");
		json_object_begin(json);
		json_key_string(json, "name", slash + 1);
		json_key_string(json, "path", program);
		json_key_uint(json, "type_id", 1);
		json_object_end(json);
	}
	if (*text_of(row, "cwd"))
		json_key_string(json, "working_directory", text_of(row, "cwd"));
	json_object_end(json);
	json_key(json, "device");
	json_object_begin(json);
	json_key_uint(json, "type_id", 0);
	json_key_string(json, "hostname", uname(&host) ? "" : host.nodename);
	json_object_end(json);
	if (json_is_integer(json_object_get(row, "exit_code")))
		json_key_int(json, "exit_code", json_integer_value(json_object_get(row, "exit_code")));
	if (json_is_integer(json_object_get(row, "duration_ms")))
		json_key_int(json, "duration", json_integer_value(json_object_get(row, "duration_ms")));
}

static void write_api(struct json *json, const json_t *row)
{
	static const char *const details[] = { "change", "action", "outcome" };
	char operation[128];
	const char *detail = "";
	for (size_t i = 0; i < ARRAY_SIZE(details) && !*detail; i++)
		detail = text_of(row, details[i]);
	snprintf(operation, sizeof(operation), "%s%s%.64s", text_of(row, "row"), *detail ? "." : "", detail);
	json_key(json, "api");
	json_object_begin(json);
	json_key_string(json, "operation", operation);
	json_object_end(json);
	json_key(json, "src_endpoint");
	json_object_begin(json);
	json_key_string(json, "svc_name", "cordon");
	json_object_end(json);
}

static void write_endpoint(struct json *json, const json_t *row)
{
	json_key(json, "dst_endpoint");
	json_object_begin(json);
	json_key_string(json, "hostname", text_of(row, "host"));
	if (*text_of(row, "address"))
		json_key_string(json, "ip", text_of(row, "address"));
	if (number_of(row, "port"))
		json_key_int(json, "port", number_of(row, "port"));
	json_object_end(json);
	json_key(json, "traffic");
	json_object_begin(json);
	json_key_int(json, "bytes_in", number_of(row, "bytes_in"));
	json_key_int(json, "bytes_out", number_of(row, "bytes_out"));
	json_object_end(json);
	json_key_int(json, "duration", number_of(row, "duration_ms"));
}

/* Why it was refused; what was not has nothing of this. */
static void write_refusal(struct json *json, const json_t *row)
{
	const json_t *error = json_object_get(row, "error");
	bool denied = !strcmp(text_of(row, "decision"), "denied");
	const char *reason = error ? text_of(error, "reason") : text_of(row, denied ? "why" : "reason");
	if (error)
		json_key_string(json, "status_code", text_of(error, "class"));
	if (error || denied) {
		json_key_uint(json, "action_id", 2);
		json_key_string(json, "action", "Denied");
		json_key_uint(json, "disposition_id", 2);
		json_key_string(json, "disposition", "Blocked");
	}
	if (*reason)
		json_key_string(json, "status_detail", reason);
}

/* All but the end of the object. */
static void write_event(struct json *json, const json_t *row)
{
	const struct mapping *mapping = find_mapping(row);
	int64_t ms = 0;
	/* Without a time of its own (a damaged line) it is as old as can be. */
	(void)!utc_parse(text_of(row, "time"), &ms);
	json_object_begin(json);
	json_key_int(json, "time", ms);
	write_class(json, mapping);
	write_metadata(json, row);
	write_actor(json, row);
	switch (mapping->class) {
	case PROCESS_ACTIVITY:
		write_process(json, row);
		break;
	case API_ACTIVITY:
		write_api(json, row);
		break;
	case APPLICATION_LIFECYCLE:
		write_product(json, "app");
		break;
	case NETWORK_ACTIVITY:
		write_endpoint(json, row);
		break;
	case BASE_EVENT:
		break;
	}
	write_refusal(json, row);
	json_key(json, "unmapped");
}

char *ocsf_from_row(const char *row, size_t length)
{
	struct json json;
	json_t *parsed = json_loadb(row, length, JSON_ALLOW_NUL, NULL);
	json_init(&json);
	write_event(&json, parsed);
	size_t written = json.length;
	char *text = json_take(&json), *event;
	if (text && parsed) {
		event = malloc(written + length + 2);
		if (event) {
			memcpy(event, text, written);
			memcpy(event + written, row, length);
			memcpy(event + written + length, "}", 2);
		}
	} else if (!text || asprintf(&event, "%s{}}", text) < 0) {
		event = NULL;
	}
	free(text);
	json_decref(parsed);
	return event;
}
