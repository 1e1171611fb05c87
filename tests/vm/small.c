/* A dynamically linked program that is not the shell: as /usr/bin/true it does nothing, as /usr/bin/env it runs its
 * words. */
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 2)
		return 0;
	execvp(argv[1], argv + 1);
	return 127;
}
