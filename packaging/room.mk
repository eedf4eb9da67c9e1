# SPDX-License-Identifier: MIT
# packaging/: what is installed where is in scripts/install; the packages, and rgpu doctor, in guests that boot a Debian of their own.
LONG += packages doctor
.PHONY: long-packages long-doctor
long-packages long-doctor: long-%: all
	CUDA_HOME=$(CUDA_HOME) B=$(B) prove --failures --comments tests/long/$*.t
