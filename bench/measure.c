#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

void die(const char *what)
{
	fprintf(stderr, "bench: %s\n", what);
	exit(1);
}

void sample(struct row *r, double us)
{
	if (us < 0)
		r->absent = true;
	else if (r->n < SAMPLES_MAX)
		r->us[r->n++] = us;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double percentile(struct row *r, double p)
{
	qsort(r->us, r->n, sizeof(r->us[0]), ascending);
	return r->n ? r->us[(size_t)(p * (double)(r->n - 1))] : -1;
}

static long read_number(const char *path, const char *key)
{
	FILE *f = fopen(path, "re");
	char line[256];
	long n = -1;

	while (f && n < 0 && fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, strlen(key)) == 0)
			n = atol(line + strlen(key));
	}
	if (f)
		fclose(f);
	return n;
}

void wait_quiet(void)
{
	for (int i = 0; i < 50 && read_number("/proc/stat", "procs_running ") > 1; i++)
		usleep(1000);
}

uint64_t mem_available(void)
{
	return (uint64_t)read_number("/proc/meminfo", "MemAvailable:") * 1024;
}
