#pragma once
/*
 * Where a hub keeps its user's files: the data folder, the socket, and the token that clients send.
 * All are in HOLT_HOME if it is set, else in the XDG folders. ERR_FOLDER: a folder to be written to
 * belongs to another user than this one or root, or others may write to it.
 */
#include <limits.h>

#include "base/secret.h"

/* The path of a file in the data folder, which is created if missing (0700): HOLT_HOME, else
 * holt/ in XDG_DATA_HOME or ~/.local/share, else /var/lib/holt for a root user without a home. */
int home_file(const char *name, char ret[PATH_MAX], struct err *e) MUST_USE;

/* The same, and nothing is made. */
int home_where(const char *name, char ret[PATH_MAX], struct err *e) MUST_USE;

/* The folder of the audit log, in path. *ret NULL: this user can have no data folder. -1:
 * ERR_FOLDER. */
int home_audit(char path[PATH_MAX], const char **ret, struct err *e) MUST_USE;

/* The path of the socket. Its folder is created: HOLT_HOME, else holt/ in XDG_RUNTIME_DIR, else
 * the data folder. */
int home_socket(char ret[PATH_MAX], struct err *e) MUST_USE;

/* The path of a file in the cache folder, which is created: HOLT_HOME, else holt/ in
 * XDG_CACHE_HOME or ~/.cache. ERR_INVALID if there is none. */
int home_cache(const char *name, char ret[PATH_MAX], struct err *e) MUST_USE;

/* The path of the operator's file, whose folder need not exist: said, else HOLT_CONFIG; else
 * config.json in HOLT_HOME, else in holt/ in XDG_CONFIG_HOME or ~/.config, else in /etc/holt.
 * *must: it was named, and has to be there. */
int home_config(const char *said, char ret[PATH_MAX], bool *must, struct err *e) MUST_USE;

/* The path of another file in the configuration folder, without /etc/holt where there is a home;
 * make: with the folder (0700). */
int home_settings(const char *name, bool make, char ret[PATH_MAX], struct err *e) MUST_USE;

/* For verbs with a hub or a call of their own: a member const char *config. */
#define CONFIG_ROW(S, m)                                                                           \
	OPTION(S, m, OPTION_TEXT, "config", .arg = "FILE", .env = "HOLT_CONFIG",                   \
	       .doc = "The operator's file; by default config.json in Holt's configuration "       \
		      "folder.")

/* The token, from the file "token" in the data folder. The first call creates it (0600).
 * ERR_DENIED if others may read the file or it has another owner. */
struct secret *home_token(struct err *e) MUST_USE;

/* For the hub at this URL: HOLT_TOKEN, else home_token(), which never leaves this machine. *ret
 * NULL: there is none. *ret_own: it is home_token(), for programs of this user alone; may be
 * NULL. */
int home_token_for(const char *url, struct secret **ret, bool *ret_own, struct err *e) MUST_USE;

/* Those of Holt's own folders that can exist here: data, socket, cache and configuration. Creates
 * nothing.
 * Returns how many. */
enum { HOME_FOLDERS = 4 };
size_t home_folders(char ret[HOME_FOLDERS][PATH_MAX]);
