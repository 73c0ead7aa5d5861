#pragma once
/* A snapshot as the answers of several routes have it. */
#include "door/http/common.h"
#include "op/snapshot.h"

extern const struct field_table api_snapshot_table;
