#pragma once
/*
 * Where a hub keeps its user's files: the data folder, the socket, and the token that clients send.
 * All are in HOLT_HOME if it is set, else in the XDG folders.
 */
#include <limits.h>

#include "base/secret.h"

/* The path of a file in the data folder, which is created if missing (0700): HOLT_HOME, else
 * holt/ in XDG_DATA_HOME or ~/.local/share, else /var/lib/holt for a root user without a home. */
int home_file(const char *name, char ret[PATH_MAX], struct err *e) MUST_USE;

/* The same, and nothing is made. */
int home_where(const char *name, char ret[PATH_MAX], struct err *e) MUST_USE;

/* The path of the socket. Its folder is created: HOLT_HOME, else holt/ in XDG_RUNTIME_DIR, else
 * the data folder. */
int home_socket(char ret[PATH_MAX], struct err *e) MUST_USE;

/* The path of a file in the cache folder, which is created: HOLT_HOME, else holt/ in
 * XDG_CACHE_HOME or ~/.cache. ERR_INVALID if there is none. */
int home_cache(const char *name, char ret[PATH_MAX], struct err *e) MUST_USE;

/* The token, from the file "token" in the data folder. The first call creates it (0600).
 * ERR_DENIED if others may read the file or it has another owner. */
struct secret *home_token(struct err *e) MUST_USE;

/* Those of Holt's own folders that can exist here: data, socket and cache. Creates nothing.
 * Returns how many. */
enum { HOME_FOLDERS = 3 };
size_t home_folders(char ret[HOME_FOLDERS][PATH_MAX]);
