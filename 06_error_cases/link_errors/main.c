/* main.c - C code that calls a function from a .cu file. */
#include <stdio.h>

int gpu_add(int a, int b);

int main(void)
{
    printf("1 + 2 = %d\n", gpu_add(1, 2));
    return 0;
}
