#include "base/helper_env.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

void helper_env(char *to[HELPER_ENV_MAX + 1])
{
	/* Beginnings of NAME=VALUE. */
	static const char *const kept[] = {
		"HOLT_LOG",
		"HOLT_TEST_",
		"PATH=",
		"LANG=",
		"LC_",
		"TZ=",
		"ASAN_OPTIONS=",
		"UBSAN_OPTIONS=",
		"LSAN_OPTIONS=",
		"LD_LIBRARY_PATH=",
		"RES_OPTIONS=",
		"LOCALDOMAIN=",
		"SSL_CERT_",
		"HOME=",
		"XDG_CONFIG_HOME=",
		"XDG_DATA_HOME=",
	};
	size_t n = 0;

	for (char **at = environ; *at && n < HELPER_ENV_MAX; at++) {
		for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
			if (strncmp(*at, kept[i], strlen(kept[i])) == 0) {
				to[n++] = *at;
				break;
			}
		}
	}
	to[n] = NULL;
}
