/* SPDX-License-Identifier: MIT */
/* An executable graph from the inside: for the files that launch and that change it. */
#ifndef RGPU_GRAPH_EXEC_H
#define RGPU_GRAPH_EXEC_H

#include "lib/graph/graph.h"

/* A reference, and alone with it until exec_leave(), which gives @r back. */
CUresult exec_take(CUgraphExec handle, struct graph_exec **out);
CUresult exec_leave(struct graph_exec *x, CUresult r);

#endif
