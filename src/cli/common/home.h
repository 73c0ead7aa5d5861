#pragma once
/*
 * Where a hub keeps what is its user's: the folder of its data, its socket, and the token that
 * clients send it. With HOLT_HOME all of it is there; else the XDG folders are taken.
 */
#include <limits.h>

#include "base/secret.h"

/* The path of a file of the data folder, which is made if it is missing (0700): HOLT_HOME, else
 * holt/ in XDG_DATA_HOME or ~/.local/share, else /var/lib/holt for a root without a home. */
int home_file(const char *name, char ret[PATH_MAX], struct err *e) MUST_USE;

/* The same, and nothing is made. */
int home_where(const char *name, char ret[PATH_MAX], struct err *e) MUST_USE;

/* The path of the socket; its folder is made: HOLT_HOME, else holt/ in XDG_RUNTIME_DIR, else the data
 * folder. */
int home_socket(char ret[PATH_MAX], struct err *e) MUST_USE;

/* The path of a file of the cache folder, made likewise: HOLT_HOME, else holt/ in XDG_CACHE_HOME or
 * ~/.cache. ERR_INVALID where there is none. */
int home_cache(const char *name, char ret[PATH_MAX], struct err *e) MUST_USE;

/* The token: of the file "token" in the data folder, made at the first call (0600). ERR_DENIED for a
 * file that others may read or that is not ours. */
struct secret *home_token(struct err *e) MUST_USE;

/* The folders that are Holt's own: of its data, its socket and its cache; those that there can be here. Nothing is
 * made. Returns how many. */
enum { HOME_FOLDERS = 3 };
size_t home_folders(char ret[HOME_FOLDERS][PATH_MAX]);
