/* Runs a fuzz target over the files of a folder. */
#include <dirent.h>
#include <string.h>

#include "base/mem.h"
#include "fuzz.h"

enum { INPUT_MAX = 1 << 20 };

static void run_file(const char *path)
{
	static char text[INPUT_MAX];
	FILE *in = fopen(path, "re");
	autofree char *data = NULL;
	size_t n;

	MUST(in);
	n = fread(text, 1, sizeof(text), in);
	fclose(in);
	data = malloc(n ? n : 1); /* as large as it is, so that reading past its end is seen */
	MUST(data);
	memcpy(data, text, n);
	LLVMFuzzerTestOneInput((const uint8_t *)data, n);
}

int main(int argc, char **argv)
{
	DIR *d = argc == 2 ? opendir(argv[1]) : NULL;
	struct dirent *x;
	unsigned ran = 0;
	char path[512];

	if (!d) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	while ((x = readdir(d))) {
		if (x->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], x->d_name);
		run_file(path);
		ran++;
	}
	closedir(d);
	printf("%u inputs\n", ran);
	return ran > 0 ? 0 : 1;
}
