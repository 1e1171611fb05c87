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

int main(void)
{
	static const char *const urls[] = {
		"https://8.8.8.8/", "http://169.254.169.254/latest/meta-data/", "http://[::ffff:127.0.0.1]:8080/",
		"http://localhost/", "http://user@8.8.8.8/", "ftp://8.8.8.8/",
	};
	struct cordon *cordon = NULL;
	struct cordon_error *err = cordon_error_new();
	int failed = cordon_open(NULL, &cordon, err);

	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]) && !failed; i++) {
		struct cordon_value *judged = NULL;
		char params[128];
		snprintf(params, sizeof(params), "{\"url\": \"%s\"}", urls[i]);
		failed = cordon_call(cordon, "url.check", params, &judged, err);
		if (!failed)
			printf("%-4s %s\n", cordon_value_int(judged, "allowed") ? "yes" : "no", urls[i]);
		/* A program that fetches connects to one of the addresses in the report: a name that is resolved once
		 * more may lead elsewhere. */
		cordon_value_unref(judged);
	}
	if (failed)
		fprintf(stderr, "%s: %s\n", cordon_error_text(err, "class"), cordon_error_text(err, "reason"));
	cordon_unref(cordon);
	cordon_error_free(err);
	return failed ? 1 : 0;
}
