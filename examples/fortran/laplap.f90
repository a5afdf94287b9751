! Calls a built stencil from Fortran, on sections of larger arrays, and compares it with plain loops, bit for bit.
!
! Without a GPU:
!     stencilc build laplap --fortran --host -o .
!     g++ -O3 -ffp-contract=off -frounding-math -fno-tree-slp-vectorize -c laplap.cpp -o laplap_launcher.o
!     gfortran -O2 -fopenacc -c laplap.f90 -o laplap_module.o
!     gfortran -O2 -fopenacc -ffp-contract=off EXAMPLES/fortran/laplap.f90 laplap_module.o laplap_launcher.o -lstdc++ -o compare
! With one, nvfortran -acc takes the place of gfortran -fopenacc, and `nvcc -fmad=false -c laplap.cu` that of g++.
program compare
  use, intrinsic :: iso_c_binding, only: c_double
  use laplap_stencil, only: laplap
  implicit none
  integer, parameter :: ni = 203, nj = 97, nk = 11, edge = 3
  interface
    ! A product and a sum that are rounded once.
    pure real(c_double) function fma(a, b, c) bind(c, name="fma")
      import :: c_double
      real(c_double), value :: a, b, c
    end function
  end interface
  real(c_double), allocatable :: phi(:, :, :), res(:, :, :), expected(:, :, :)
  character(len=200) :: message
  integer :: i, j, k, ierr, wrong

  ! There is more in the arrays than the part that is computed.
  allocate (phi(ni + 2 * edge, nj + edge, nk), res(ni + 2 * edge, nj + edge, nk), expected(ni + 2 * edge, nj + edge, nk))
  call random_number(phi)
  res = -1
  expected = -1
  do k = 1, nk
    do j = 3, nj - 2
      do i = edge + 3, edge + ni - 2
        expected(i, j, k) = laplacian(lap(i, j, k), lap(i - 1, j, k), lap(i + 1, j, k), lap(i, j - 1, k), lap(i, j + 1, k))
      end do
    end do
  end do

  !$acc data copyin(phi) copy(res)
  call laplap(phi(edge + 1:edge + ni, :nj, :), res(edge + 1:edge + ni, :nj, :), ierr=ierr, message=message)
  !$acc end data
  if (ierr /= 0) then
    print "(a)", trim(message)
    error stop 1
  end if
  wrong = count(transfer(res, [0_8]) /= transfer(expected, [0_8]))
  print "(i0, a, i0, a)", wrong, " of ", size(res), " cells differ"

  ! What is wrong is told.
  call laplap(phi(:4, :nj, :), res(:4, :nj, :), ierr=ierr, message=message)
  if (ierr == 0) error stop "a grid that is too small was accepted"
  print "(a)", trim(message)
  if (wrong /= 0) error stop 1

contains

  ! 4*a - a[i-1] - a[i+1] - a[j-1] - a[j+1]: the product and the first difference round once.
  pure real(c_double) function laplacian(a, left, right, top, bottom)
    real(c_double), intent(in) :: a, left, right, top, bottom
    laplacian = fma(4.0_c_double, a, -left) - right - top - bottom
  end function

  pure real(c_double) function lap(i, j, k)
    integer, intent(in) :: i, j, k
    lap = laplacian(phi(i, j, k), phi(i - 1, j, k), phi(i + 1, j, k), phi(i, j - 1, k), phi(i, j + 1, k))
  end function
end program
