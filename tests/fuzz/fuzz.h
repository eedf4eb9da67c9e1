/* SPDX-License-Identifier: MIT */
/* What a fuzz target gives to libFuzzer, to the mutator and to the replay of the corpus. */
#ifndef RGPU_TESTS_FUZZ_FUZZ_H
#define RGPU_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* libFuzzer's own mutations, for use in a mutator. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed);

#endif
