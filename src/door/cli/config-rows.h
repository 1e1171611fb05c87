/* The rows of include/cordon-config.def as text: `cordon config docs` and the manual are made from them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum config_kind {
#define CONFIG_TYPE(id, must_be) KIND_##id,
#include "cordon-config.def"
	KIND_MAX
};
extern const char *const config_kind_texts[KIND_MAX];

struct config_text {
	const char *section, *key;
	enum config_kind kind;
	const char *values;
	uint64_t least, most;
	const char *fallback, *example;
	const char *project;            /* what a project's file may do with it, as a sentence; or "" */
	bool waits;                     /* a change waits for the next start */
	const char *help, *more;
};
extern const struct config_text config_texts[];
extern const size_t config_text_count;

/* Its section is any number of tables. */
bool config_text_repeats(const struct config_text *row);

struct config_section_text {
	const char *name, *help, *example;
};
extern const struct config_section_text config_section_texts[];
extern const size_t config_section_text_count;

/* From what to what a value may go, as text; "" for what has no range. */
#define CONFIG_RANGE_SIZE 80
void config_text_range(const struct config_text *text, char ret_range[CONFIG_RANGE_SIZE]);

/* A file with every setting commented out: those lines begin with "#" and no space. On standard output. */
void config_print_sample(void);
