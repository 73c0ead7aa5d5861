/* Prints the compiled table of patterns as C. */
#include <hs/hs.h>
#include <stdio.h>
#include <stdlib.h>

#include "guard/redact/internal.h"

int main(void)
{
	hs_database_t *db = NULL;
	struct err e = ERR_INIT;
	char *bytes = NULL;
	size_t n = 0;

	if (patterns_compile(&db, &e) < 0 || hs_serialize_database(db, &bytes, &n) != HS_SUCCESS) {
		fprintf(stderr, "redaction patterns: %s\n", e.msg);
		return 1;
	}
	puts("#include \"guard/redact/internal.h\"\n");
	printf("const size_t pattern_database_size = %zu;\nconst char pattern_database[] = {", n);
	for (size_t i = 0; i < n; i++) /* as signed as char is where this runs */
		printf("%s%d,", i % 24 ? "" : "\n", bytes[i]);
	puts("\n};");
	free(bytes);
	hs_free_database(db);
	return 0;
}
