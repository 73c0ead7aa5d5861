#pragma once
/* What is in a sandbox, by path: files.stat, files.mkdir, files.remove, files.move. */
#include "box/host/box.h"
#include "op/ops.h"

enum { FILES_PATH_MAX = 4095 };

/* It is done; path is where it is now. */
struct files_done {
	struct str sandbox, path, status;
};

struct file_info {
	/* path: as it was sent; name: its last part */
	struct str path, name;
	bool is_dir;
	enum file_type type;
	uint64_t size;
	uint32_t mode;
	int64_t modified_at;
};
extern const char *const file_type_names[4];
