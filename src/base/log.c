#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RECORD_MAX = 2048 };

static const char *const names[] = { "error", "warn", "info", "debug" };

static struct {
	const char *program;
	enum log_level level;
	bool json;
	char request[64];
} state = { .program = "holt", .level = LOG_WARN };

static _Thread_local struct {
	void (*rewrite)(void *data, char *text, size_t size);
	void *data;
	bool busy;
} filter;

void log_filter(void (*rewrite)(void *data, char *text, size_t size), void *data)
{
	filter.rewrite = rewrite;
	filter.data = data;
}

void log_init(const char *program)
{
	const char *level = getenv("HOLT_LOG");
	const char *format = getenv("HOLT_LOG_FORMAT");

	state.program = program;
	for (size_t i = 0; level && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(level, names[i]) == 0)
			state.level = (enum log_level)i;
	}
	state.json = format && strcmp(format, "json") == 0;
}

/* Twice for every request, so nothing is formatted. */
void log_request(const char *id)
{
	size_t n = id ? strnlen(id, sizeof(state.request) - 1) : 0;

	if (n > 0)
		memcpy(state.request, id, n);
	state.request[n] = '\0';
}

bool log_on(enum log_level level)
{
	return level <= state.level;
}

/* Appends s to line at *n, escaped as inside a JSON string; what does not fit is dropped. */
static void put_escaped(char *line, size_t *n, const char *s)
{
	for (; *s && *n + 8 < RECORD_MAX; s++) {
		unsigned char c = (unsigned char)*s;

		if (c < 0x20 || c == 0x7f)
			*n += (size_t)snprintf(line + *n, 8, "\\u%04x", c);
		else if (state.json && (c == '"' || c == '\\'))
			*n += (size_t)snprintf(line + *n, 8, "\\%c", c);
		else
			line[(*n)++] = (char)c;
	}
}

void log_at(enum log_level level, const char *fmt, ...)
{
	char line[RECORD_MAX + 1], msg[1024], request[sizeof(state.request)];
	struct timespec now;
	struct tm tm;
	va_list ap;
	size_t n;

	if (!log_on(level) || filter.busy)
		return;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	memcpy(request, state.request, sizeof(request));
	if (filter.rewrite) {
		filter.busy = true;
		filter.rewrite(filter.data, msg, sizeof(msg));
		filter.rewrite(filter.data, request, sizeof(request));
		filter.busy = false;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	n = strftime(line, sizeof(line), state.json ? "{\"time\":\"%FT%T" : "%FT%T", &tm);
	n += (size_t)snprintf(line + n, sizeof(line) - n,
			      state.json
				      ? ".%03ldZ\",\"level\":\"%s\",\"program\":\"%s\",\"pid\":%d"
				      : ".%03ldZ %s %s[%d]",
			      now.tv_nsec / 1000000, names[level], state.program, (int)getpid());
	if (request[0]) {
		n += (size_t)snprintf(line + n, sizeof(line) - n, "%s",
				      state.json ? ",\"request\":\"" : " request=");
		put_escaped(line, &n, request);
		if (state.json)
			line[n++] = '"';
	}
	n += (size_t)snprintf(line + n, sizeof(line) - n, "%s", state.json ? ",\"msg\":\"" : ": ");
	put_escaped(line, &n, msg);
	n += (size_t)snprintf(line + n, sizeof(line) - n, "%s\n", state.json ? "\"}" : "");
	/* one write, so that records of several processes don't mix; a failure has no one to
	 * tell */
	if (write(STDERR_FILENO, line, n) < 0)
		return;
}
