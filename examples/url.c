/* Asking before fetching: where would these lead?
 *
 *     cc url.c -o url $(pkg-config --cflags --libs cordon) && ./url
 *
 * Prints for each URL whether it may be fetched:
 *
 *     yes  https://8.8.8.8/
 *     no   http://169.254.169.254/latest/meta-data/
 *     no   http://[::ffff:127.0.0.1]:8080/
 *     no   http://localhost/
 *     no   http://user@8.8.8.8/
 *     no   ftp://8.8.8.8/
 */
#include <cordon.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
	static const char *const urls[] = {
		"https://8.8.8.8/", "http://169.254.169.254/latest/meta-data/", "http://[::ffff:127.0.0.1]:8080/",
		"http://localhost/", "http://user@8.8.8.8/", "ftp://8.8.8.8/",
	};
	struct cordon *cordon = NULL;
	struct cordon_error err;
	int failed = cordon_open(NULL, &cordon, &err);

	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]) && !failed; i++) {
		char *json = NULL;
		bool allowed = false;
		failed = cordon_url_check(cordon, urls[i], &json, &allowed, &err);
		if (!failed)
			printf("%-4s %s\n", allowed ? "yes" : "no", urls[i]);
		/* A program that fetches connects to one of the addresses in the JSON: a name that is resolved once
		 * more may lead elsewhere. */
		free(json);
	}
	if (failed)
		fprintf(stderr, "%s: %s (%s)\n", cordon_class_name(err.class), err.reason, err.subject);
	cordon_unref(cordon);
	return failed ? 1 : 0;
}
