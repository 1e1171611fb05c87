/* What the C runtime lacks: see system.h. */
#undef fclose
#include <pthread.h>
#include <sys/utsname.h>
#include <windows.h>
#include <ntsecapi.h>

NTSTATUS NTAPI RtlGetVersion(RTL_OSVERSIONINFOW *version);

#include "base/windows/wide.h"

void explicit_bzero(void *bytes, size_t size)
{
	SecureZeroMemory(bytes, size);
}

void *memrchr(const void *bytes, int c, size_t size)
{
	for (const unsigned char *at = (const unsigned char *)bytes + size; at > (const unsigned char *)bytes;)
		if (*--at == (unsigned char)c)
			return (void *)(uintptr_t)at;
	return NULL;
}

void *mempcpy(void *to, const void *from, size_t size)
{
	return (char *)memcpy(to, from, size) + size;
}

void *memmem(const void *bytes, size_t size, const void *wanted, size_t length)
{
	const char *at = bytes, *end = at + size;
	if (!length)
		return (void *)(uintptr_t)bytes;
	for (; (size_t)(end - at) >= length; at++) {
		at = memchr(at, *(const unsigned char *)wanted, (size_t)(end - at) - length + 1);
		if (!at)
			return NULL;
		if (!memcmp(at, wanted, length))
			return (void *)(uintptr_t)at;
	}
	return NULL;
}

char *strchrnul(const char *text, int c)
{
	char *found = strchr(text, c);
	return found ? found : (char *)(uintptr_t)text + strlen(text);
}

char *stpcpy(char *to, const char *from)
{
	size_t length = strlen(from);
	return (char *)memcpy(to, from, length + 1) + length;
}

char *strndup(const char *text, size_t most)
{
	size_t length = strnlen(text, most);
	char *copy = malloc(length + 1);
	if (copy) {
		memcpy(copy, text, length);
		copy[length] = '\0';
	}
	return copy;
}

char *strcasestr(const char *text, const char *wanted)
{
	size_t length = strlen(wanted);
	for (; *text || !length; text++)
		if (!strncasecmp(text, wanted, length))
			return (char *)(uintptr_t)text;
	return NULL;
}

char *strsep(char **text, const char *separators)
{
	char *word = *text;
	if (!word)
		return NULL;
	char *end = word + strcspn(word, separators);
	*text = *end ? end + 1 : NULL;
	*end = '\0';
	return word;
}

char *system_basename(char *path)
{
	for (char *at = path; *at; at++)
		if (*at == '/' || *at == '\\')
			path = at + 1;
	return path;
}

struct ordering {
	int (*compare)(const void *, const void *, void *);
	void *arg;
};

static int compare_by(void *ordering, const void *a, const void *b)
{
	const struct ordering *by = ordering;
	return by->compare(a, b, by->arg);
}

void qsort_r(void *items, size_t count, size_t size, int (*compare)(const void *, const void *, void *), void *arg)
{
	struct ordering by = { compare, arg };
	qsort_s(items, count, size, compare_by, &by);
}

void *reallocarray(void *old, size_t count, size_t size)
{
	size_t total;
	if (__builtin_mul_overflow(count, size, &total)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(old, total);
}

const char *strerrordesc_np(int number)
{
	static const struct {
		int number;
		const char *text;
	} own[] = { { ESTALE, "Stale file handle" },
		    { EDQUOT, "Disk quota exceeded" },
		    { EKEYREJECTED, "Key was rejected by service" },
		    { ELOOP, "Too many levels of symbolic links" },
		    { EOVERFLOW, "Value too large for defined data type" } };
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (own[i].number == number)
			return own[i].text;
	const char *text = strerror(number);
	return strcmp(text, "Unknown error") ? text : NULL;
}

ssize_t getrandom(void *bytes, size_t size, unsigned flags)
{
	(void)flags;
	if (RtlGenRandom(bytes, (ULONG)size))
		return (ssize_t)size;
	errno = EIO;
	return -1;
}

int uname(struct utsname *ret_names)
{
	WCHAR name[256];
	DWORD length = 256;
	RTL_OSVERSIONINFOW version = { .dwOSVersionInfoSize = sizeof(version) };
	*ret_names = (struct utsname){ .sysname = "Windows", .machine = "x86_64" };
	/* What GetVersionEx() tells depends on the program's manifest. */
	if (RtlGetVersion(&version) == 0)
		snprintf(ret_names->release, sizeof(ret_names->release), "%lu.%lu.%lu", version.dwMajorVersion,
		         version.dwMinorVersion, version.dwBuildNumber);
	if (!GetComputerNameExW(ComputerNameDnsHostname, name, &length) ||
	    wide_to_text(name, ret_names->nodename, sizeof(ret_names->nodename)) < 0)
		return -1;
	return 0;
}

/* ---- streams into memory ----------------------------------------------------------------------------------------- */

/* A temporary file that has no name any more; its content is read back when it is closed. */
static struct memory_stream {
	FILE *stream;
	char **text;
	size_t *length;
} streams[64];
static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;

FILE *open_memstream(char **ret_text, size_t *ret_length)
{
	FILE *stream = system_temporary();
	pthread_mutex_lock(&streams_lock);
	size_t i = 0;
	while (i < 64 && streams[i].stream)
		i++;
	if (stream && i < 64)
		streams[i] = (struct memory_stream){ stream, ret_text, ret_length };
	pthread_mutex_unlock(&streams_lock);
	if (stream && i == 64) {
		fclose(stream);
		errno = EMFILE;
		return NULL;
	}
	return stream;
}

int system_fclose(FILE *stream)
{
	struct memory_stream found = { 0 };
	pthread_mutex_lock(&streams_lock);
	for (size_t i = 0; i < 64; i++)
		if (streams[i].stream == stream) {
			found = streams[i];
			streams[i] = (struct memory_stream){ 0 };
		}
	pthread_mutex_unlock(&streams_lock);
	long length = found.stream ? ftell(stream) : 0;
	int result = length < 0 || ferror(stream) ? EOF : 0;
	char *text = found.stream && result == 0 ? malloc((size_t)length + 1) : NULL;
	if (found.stream && result == 0) {
		rewind(stream);
		result = text && fread(text, 1, (size_t)length, stream) == (size_t)length ? 0 : EOF;
	}
	if (text && result == 0) {
		text[length] = '\0';
		*found.text = text;
		*found.length = (size_t)length;
	} else {
		free(text);
	}
	return fclose(stream) || result ? EOF : 0;
}
