#pragma once
/*
 * The answer of each program of Holt where --version is its only argument. `holt self-check`
 * compares it with its own version.
 */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define VERSION_TOLD(name, argc, argv) version_told(argc, argv, name " " HOLT_VERSION "\n")

/* Whether it was asked for, and is told. */
static inline bool version_told(int argc, char **argv, const char *line)
{
	size_t n = strlen(line);

	return argc == 2 && strcmp(argv[1], "--version") == 0 &&
	       write(STDOUT_FILENO, line, n) == (ssize_t)n;
}
