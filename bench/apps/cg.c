/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PETSc's conjugate gradients, Jacobi's preconditioner, on the 5-point Laplacian of a square grid: each step
 * has a product with the matrix, and two or three Allreduces of one number. Prints the seconds of the solves,
 * the steps, and the norm of the solution.
 *
 *     cg <points on a side> <solves>
 */
#include <petscksp.h>

int main(int argc, char **argv)
{
    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscInt side = argc > 1 ? atoi(argv[1]) : 100, first, end, steps = 0;
    int solves = argc > 2 ? atoi(argv[2]) : 1;
    Mat matrix;
    Vec right, x;
    KSP solver;
    PC before;
    PetscReal norm;
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, side * side, side * side, 5, NULL, 4, NULL, &matrix));
    PetscCall(MatGetOwnershipRange(matrix, &first, &end));
    for (PetscInt row = first; row < end; row++) {
        PetscInt i = row / side, j = row % side, others[] = {row - side, row + side, row - 1, row + 1};
        int there[] = {i > 0, i < side - 1, j > 0, j < side - 1};
        for (int k = 0; k < 4; k++)
            if (there[k])
                PetscCall(MatSetValue(matrix, row, others[k], -1, INSERT_VALUES));
        PetscCall(MatSetValue(matrix, row, row, 4, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(matrix, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(matrix, MAT_FINAL_ASSEMBLY));
    PetscCall(MatCreateVecs(matrix, &x, &right));
    PetscCall(VecSet(right, 1));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &solver));
    PetscCall(KSPSetOperators(solver, matrix, matrix));
    PetscCall(KSPSetType(solver, KSPCG));
    PetscCall(KSPGetPC(solver, &before));
    PetscCall(PCSetType(before, PCJACOBI));
    PetscCall(KSPSetTolerances(solver, 1e-10, PETSC_DEFAULT, PETSC_DEFAULT, 100000));
    PetscCall(KSPSetUp(solver));
    PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
    double seconds = MPI_Wtime();
    for (int i = 0; i < solves; i++) {
        PetscInt more;
        PetscCall(KSPSolve(solver, right, x));
        PetscCall(KSPGetIterationNumber(solver, &more));
        steps += more;
    }
    PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
    seconds = MPI_Wtime() - seconds;
    PetscCall(VecNorm(x, NORM_2, &norm));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "cg: %.6f s, %d steps, norm %.12g\n", seconds, (int)steps, (double)norm));
    PetscCall(KSPDestroy(&solver));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&right));
    PetscCall(MatDestroy(&matrix));
    PetscCall(PetscFinalize());
    return 0;
}
