/* Any bytes as a file: URI of the exec-server: what comes out is an absolute path, and the same when it is told back.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "door/exec/exec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *uri = malloc(size + 1);
	if (!uri)
		return 0;
	memcpy(uri, data, size);
	uri[size] = '\0';
	char *path = exec_path_of_uri(uri);
	if (path) {
		char *told = exec_uri_of_path(path), *again = told ? exec_path_of_uri(told) : NULL;
		if (*path != '/' || !again || strcmp(path, again) != 0)
			abort();
		free(told);
		free(again);
	}
	free(path);
	free(uri);
	return 0;
}
