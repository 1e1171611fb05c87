/* The seal on Windows: see seal.h. The process has had a token of Low integrity without privileges, and a job object in
 * which no other process fits, from its first instruction on (driver/windows/proxy.c). What is left for the process
 * itself is to give up what a program may do with its own memory and handles. The words by which it takes its socket
 * are its standard input. */
#include "base/windows/sockets.h"

#include "proxy/seal.h"

#define DESCRIPTORS_MAX 16000           /* of base/windows/sockets.c */

void seal_prepare(int socket_fd)
{
	struct socket_passed words;
	DWORD got = 0;
	HANDLE input = GetStdHandle(STD_INPUT_HANDLE);
	if (!ReadFile(input, words.bytes, sizeof(words.bytes), &got, NULL) || got != sizeof(words.bytes) ||
	    socket_adopt(socket_fd, &words) < 0)
		_exit(1);
	close(STDIN_FILENO);
}

int seal_enter_network(int fd, bool is_in_user)
{
	(void)fd;
	(void)is_in_user;
	errno = ENOSYS;
	return -1;
}

/* The driver took from it what an administrator is. */
const char *seal_drop_root(void)
{
	return NULL;
}

const char *seal_raise(uint64_t *descriptors, bool offline)
{
	PROCESS_MITIGATION_DYNAMIC_CODE_POLICY code = { .ProhibitDynamicCode = 1 };
	PROCESS_MITIGATION_EXTENSION_POINT_DISABLE_POLICY extensions = { .DisableExtensionPoints = 1 };
	PROCESS_MITIGATION_STRICT_HANDLE_CHECK_POLICY handles = { .RaiseExceptionOnInvalidHandleReference = 1,
		                                                  .HandleExceptionsPermanentlyEnabled = 1 };
	PROCESS_MITIGATION_IMAGE_LOAD_POLICY images = { .NoRemoteImages = 1, .NoLowMandatoryLabelImages = 1 };
	const struct {
		PROCESS_MITIGATION_POLICY name;
		void *value;
		size_t size;
	} policies[] = {
		{ ProcessDynamicCodePolicy, &code, sizeof(code) },
		{ ProcessExtensionPointDisablePolicy, &extensions, sizeof(extensions) },
		{ ProcessStrictHandleCheckPolicy, &handles, sizeof(handles) },
		{ ProcessImageLoadPolicy, &images, sizeof(images) },
	};
	(void)offline;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++)
		if (!SetProcessMitigationPolicy(policies[i].name, policies[i].value, policies[i].size))
			return "the system does not take what the process gives up";
	if (*descriptors > DESCRIPTORS_MAX)
		*descriptors = DESCRIPTORS_MAX;
	return NULL;
}
