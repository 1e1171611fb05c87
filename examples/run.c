/* One command, from start to end: it may write in the current directory and read the system, and that is all.
 *
 *     cc run.c -o run $(pkg-config --cflags --libs cordon) && ./run
 *
 * Prints the exit code, the driver, both outputs and what kept the network out:
 *
 *     exit code 1, by namespaces
 *     stdout: hello
 *     stderr: cat: /etc/shadow: No such file or directory
 *     network: network namespace
 */
#include <cordon.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	struct cordon *cordon = NULL;
	struct cordon_request *request = NULL;
	struct cordon_value *result = NULL;
	struct cordon_error *err = cordon_error_new();
	const char *const argv[] = { "sh", "-c", "echo hello; cat /etc/shadow", NULL };
	char here[4096];
	int status = 1;

	if (!err || !getcwd(here, sizeof(here)))
		return 1;
	if (cordon_open(NULL, &cordon, err) < 0 || cordon_request_new(&request, err) < 0 ||
	    cordon_request_set(request, "workspace", here, err) < 0 ||
	    cordon_request_set(request, "timeout", "10s", err) < 0 ||
	    cordon_request_command(request, argv, err) < 0 || cordon_run(cordon, request, &result, err) < 0) {
		fprintf(stderr, "%s: %s\n", cordon_error_text(err, "class"), cordon_error_text(err, "reason"));
	} else {
		printf("exit code %d, by %s\n", (int)cordon_value_int(result, "exit_code"),
		       cordon_value_text(result, "driver", NULL));
		printf("stdout: %s", cordon_value_text(result, "stdout", NULL));
		printf("stderr: %s", cordon_value_text(result, "stderr", NULL));
		printf("network: %s\n", cordon_value_text(result, "isolation.network", NULL));
		status = 0;
	}
	cordon_value_unref(result);
	cordon_request_unref(request);
	cordon_unref(cordon);
	cordon_error_free(err);
	return status;
}
