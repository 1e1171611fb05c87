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
	struct cordon_result *result = NULL;
	struct cordon_error err;
	const char *const argv[] = { "sh", "-c", "echo hello; cat /etc/shadow", NULL };
	char here[4096];
	int status = 1;

	if (!getcwd(here, sizeof(here)))
		return 1;
	if (cordon_open(NULL, &cordon, &err) < 0 || cordon_request_new(&request, &err) < 0 ||
	    cordon_request_set(request, "workspace", here, &err) < 0 ||
	    cordon_request_set(request, "timeout", "10s", &err) < 0 ||
	    cordon_request_command(request, argv, &err) < 0 || cordon_run(cordon, request, &result, &err) < 0) {
		/* Nothing ran. The error says which step refused, why, and what to do about it. */
		fprintf(stderr, "%s: %s (%s)\n%s\n", cordon_class_name(err.class), err.reason, err.subject, err.remediation);
	} else {
		printf("exit code %d, by %s\n", result->exit_code, result->driver);
		printf("stdout: %sstderr: %s", result->stdout_data, result->stderr_data);
		printf("network: %s\n", result->isolation[CORDON_WALL_NETWORK]);
		status = 0;
	}
	cordon_result_unref(result);
	cordon_request_unref(request);
	cordon_unref(cordon);
	return status;
}
