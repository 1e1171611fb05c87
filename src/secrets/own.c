/* See own.h. */
#include "secrets/own.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Words of a name, between underscores, that say what the value is. */
static const char *const telling[] = {
	"APIKEY", "AUTH",   "BEARER",     "COOKIE", "CREDENTIAL", "CREDENTIALS", "DSN",
	"KEY",    "PASS",   "PASSPHRASE", "PASSWD", "PASSWORD",   "PAT",         "PW",
	"PWD",    "SECRET", "SECRETS",    "TOKEN",  "TOKENS",     "WEBHOOK",
};
/* A last word that says where or of which kind it is. */
static const char *const elsewhere[] = {
	"ALGORITHM", "DIR",  "DOMAIN", "FILE", "FORMAT", "HOST", "ID",   "LENGTH",   "METHOD",  "MODE",
	"NAME",      "PATH", "PORT",   "SOCK", "SOCKET", "TYPE", "USER", "USERNAME", "VERSION",
};

/* Words that say of a key or a token that everybody may see it; unless one of `hidden` says that nobody may. */
static const char *const public[] = { "ANON", "FINGERPRINT", "PUBKEY", "PUBLIC", "PUBLISHABLE" };
static const char *const hidden[] = { "CREDENTIAL", "CREDENTIALS", "PASS",    "PASSPHRASE", "PASSWD",
	                              "PASSWORD",   "PRIVATE",     "PRIVKEY", "SECRET",     "SECRETS" };
/* Names that begin like this are for what a build puts into a page, and search in one. */
static const char *const public_beginnings[] = {
	"ALGOLIA_SEARCH_", "DOCSEARCH_",   "EXPO_PUBLIC_", "GATSBY_", "NEXT_PUBLIC_",
	"NUXT_PUBLIC_",    "PUBLIC_",      "REACT_APP_",   "VITE_",   "VUE_APP_",
};

static bool is_word(const char *const *words, size_t count, const char *word, size_t length)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(words[i]) == length && !strncasecmp(words[i], word, length))
			return true;
	return false;
}

static bool begins(const char *name, size_t length, const char *with)
{
	return length > strlen(with) && !strncasecmp(name, with, strlen(with));
}

/* A public key is no secret, whatever else its name says. */
static bool is_public_name(const char *name, size_t length)
{
	const char *end = name + length, *word = name;
	bool is_public = false;
	for (size_t i = 0; i < ARRAY_SIZE(public_beginnings); i++)
		is_public |= begins(name, length, public_beginnings[i]);
	for (const char *at = name; at <= end; at++) {
		if (at < end && *at != '_')
			continue;
		size_t size = (size_t)(at - word);
		if (is_word(hidden, ARRAY_SIZE(hidden), word, size))
			return false;
		bool is_half = size == 3 && !strncasecmp(word, "PUB", 3);
		is_public |= is_half && end - at >= 4 && !strncasecmp(at, "_KEY", 4);
		is_public |= is_word(public, ARRAY_SIZE(public), word, size);
		word = at + 1;
	}
	return is_public;
}

bool own_is_secret_name(const char *name, size_t length)
{
	/* The current directory; the fingerprint of who signed the image that is run. */
	static const char *const others[] = { "PWD", "OLDPWD", "GPG_KEY" };
	bool is_telling = false;
	const char *end = name + length, *word = name;
	if (is_word(others, ARRAY_SIZE(others), name, length) || is_public_name(name, length))
		return false;
	for (const char *at = name; at <= end; at++) {
		if (at < end && *at != '_')
			continue;
		size_t size = (size_t)(at - word);
		is_telling |= is_word(telling, ARRAY_SIZE(telling), word, size);
		/* Without an underscore between: MYTOKEN, dbpassword. */
		static const char *const ends[] = { "TOKEN", "SECRET", "PASSWORD", "PASSWD", "APIKEY" };
		for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
			is_telling |=
				size > strlen(ends[i]) && !strncasecmp(at - strlen(ends[i]), ends[i], strlen(ends[i]));
		if (at == end && is_word(elsewhere, ARRAY_SIZE(elsewhere), word, size))
			return false;
		word = at + 1;
	}
	return is_telling;
}

bool own_is_passed(const struct strings *passed, const char *name, size_t length)
{
	for (size_t i = 0; passed && i < passed->count; i++) {
		const char *one = passed->items[i];
		size_t size = strlen(one);
		bool is_prefix = size && one[size - 1] == '*';
		if (is_prefix ? length >= size - 1 && !memcmp(one, name, size - 1) :
		                size == length && !memcmp(one, name, length))
			return true;
	}
	return false;
}

/* The password of scheme://user:password@host; NULL if there is none. */
static const char *url_password(const char *value, size_t *ret_length)
{
	const char *host = strstr(value, "://");
	if (!host)
		return NULL;
	const char *from = host + 3, *end = from + strcspn(from, "/?# "),
		   *at = memrchr(from, '@', (size_t)(end - from));
	const char *colon = at ? memchr(from, ':', (size_t)(at - from)) : NULL;
	if (!colon)
		return NULL;
	*ret_length = (size_t)(at - colon - 1);
	return colon + 1;
}

/* Where something lies is no secret, and of an address only the password is. */
static bool may_be_secret(const char *value)
{
	return !strstr(value, "://") && !(*value == '/' && access(value, F_OK) == 0);
}

static int add_variable(struct secret_set *set, const char *name, const char *value, bool is_secret)
{
	size_t length = strlen(value), password_length = 0;
	const char *password = url_password(value, &password_length);
	if (password)
		return secret_set_add(set, name, password, password_length);
	if (!is_secret || !may_be_secret(value))
		return 0;
	return secret_set_add(set, name, value, length);
}

int own_add_environment(struct secret_set *set, char *const *environment, const struct strings *passed)
{
	for (int turn = 0; turn < 2; turn++) {
		for (char *const *at = environment; at && *at; at++) {
			size_t length = strcspn(*at, "=");
			char name[SECRET_OWN_NAME];
			if ((*at)[length] != '=' || !length || length >= sizeof(name))
				continue;
			memcpy(name, *at, length);
			name[length] = '\0';
			const char *value = *at + length + 1;
			bool is_passed = own_is_passed(passed, name, length);
			int status = 0;
			/* What is passed on comes first: another variable may have the same value. */
			if (turn == 0 && is_passed)
				status = secret_set_exempt(set, name, value, strlen(value),
				                           own_is_secret_name(name, length) && may_be_secret(value));
			else if (turn == 1 && !is_passed)
				status = add_variable(set, name, value, own_is_secret_name(name, length));
			if (status < 0)
				return -1;
		}
	}
	return 0;
}

int own_exempt(struct secret_set *set, const struct strings *given)
{
	for (size_t i = 0; given && i < given->count; i++) {
		size_t length = strcspn(given->items[i], "=");
		const char *value = given->items[i] + length + 1;
		char name[SECRET_OWN_NAME];
		if (!value[-1])
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(length < sizeof(name) ? length : sizeof(name) - 1),
		         given->items[i]);
		if (secret_set_exempt(set, name, value, strlen(value),
		                      own_is_secret_name(name, strlen(name)) && may_be_secret(value)) < 0)
			return -1;
	}
	return 0;
}
