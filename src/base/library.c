#include "base/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "base/log.h"

static struct library *libraries;
static size_t libraries_n;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void library_rows(struct library *rows, size_t n)
{
	libraries = rows;
	libraries_n = n;
}

/* Never unloaded: threads and handlers of the library may remain. */
static int library_open(struct library *l, struct err *e)
{
	void *handle = dlopen(l->soname, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		log_debug("dlopen: %s", dlerror());
		return err_set(e, ERR_PROGRAM, "the library %s can't be loaded; install it",
			       l->soname);
	}
	for (size_t i = 0; i < l->n; i++) {
		void *address = dlsym(handle, l->functions[i].name);

		if (!address)
			return err_set(e, ERR_PROGRAM, "the library %s is too old: it has no %s",
				       l->soname, l->functions[i].name);
		*l->functions[i].address = address;
	}
	l->loaded = true;
	return 0;
}

const char *library_name(size_t i)
{
	return i < libraries_n ? libraries[i].name : NULL;
}

int library_load(const char *name, struct err *e)
{
	int rc = 0;

	pthread_mutex_lock(&mutex);
	for (size_t i = 0; i < libraries_n && rc == 0; i++) {
		if (strcmp(libraries[i].name, name) == 0 && !libraries[i].loaded)
			rc = library_open(&libraries[i], e);
	}
	pthread_mutex_unlock(&mutex);
	return rc;
}
