#pragma once
/* A snapshot as the answers of several routes have it. */
#include "door/http/common.h"
#include "op/snapshot.h"

extern const struct field_table api_snapshot_table;

/* The snapshot as a segment of the path. */
extern const struct field_table snapshot_path_table;
#define API_SNAPSHOT_PATH(S)                                                                       \
	FIELD_OBJECT(S, path, snapshot_path_table, .flags = FIELD_REQUIRED, .doc = "The snapshot.")
