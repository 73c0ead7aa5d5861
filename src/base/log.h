#pragma once
/*
 * Logging: one record, one line, on stderr; text, or JSON on request. Control characters in what
 * is logged are escaped, so a record can't forge another. HOLT_LOG and HOLT_LOG_FORMAT set level
 * and form. The request id, set while a request is served, stands in every record.
 */
#include "base/err.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Reads the environment; program is borrowed for ever. Before it is called, warnings and errors
 * are logged as text. */
void log_init(const char *program);

/* The id of the request being served, copied (at most 63 bytes); NULL for none. */
void log_request(const char *id);

/* Rewrites the message and the request id of each record of this thread, in place and with its NUL
 * in size bytes; what it would log itself is dropped. NULL: nothing does. */
void log_filter(void (*rewrite)(void *data, char *text, size_t size), void *data);

void log_at(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool log_on(enum log_level level);

#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...)                                                                             \
	do {                                                                                       \
		if (log_on(LOG_DEBUG))                                                             \
			log_at(LOG_DEBUG, __VA_ARGS__);                                            \
	} while (0)
