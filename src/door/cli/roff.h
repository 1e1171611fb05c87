/* Text for manual pages, on standard output. */
#pragma once

/* As it is. */
void roff_print(const char *text);
/* A phrase, as the beginning of a sentence. */
void roff_print_sentence(const char *phrase);
/* The settings of the configuration, section by section. */
void roff_print_settings(void);
