! Arrays of every sort that Fortran has are given to runs and got from them: sections, components, expressions, padded names.
program arrays
  use, intrinsic :: iso_c_binding
  use stencilc
  implicit none
  type pair
    real(c_double) :: a, b
  end type
  type(pair) :: pairs(6, 6, 1)
  real(c_double) :: plain(6, 6, 1), wide(9, 8, 4), back(9, 8, 4)
  real(c_float) :: single(3, 2, 2, 2)
  integer(c_int32_t) :: whole(5, 4, 2), twice(5, 4, 2)
  logical(c_bool) :: is_wet(5, 4, 2), is_dry(5, 4, 2)
  integer :: i, j, k, ierr
  character(len=300) :: message
  character(len=20) :: device = "cpu"
  type(stencilc_stencil) :: double, kinds
  type(stencilc_run) :: run

  call double%compile("program p { inout c; c = two(c) }; stencil two { in a; out b; b = 2*a }", "p.stn  ", "p   ")
  call double%set_device(device)
  pairs%a = 3
  pairs%b = -1
  call run%begin(double, [given("c   ", pairs%a)])
  call run%step()
  call run%get("c", plain)
  call run%get("c", pairs%a)
  call check(all(nint(plain) == 6) .and. all(nint(pairs%a) == 6) .and. all(nint(pairs%b) == -1))
  call run%put("c", pairs%a + 1)
  call run%get("c", plain)
  call check(all(nint(plain) == 7))

  do k = 1, 4
    do j = 1, 8
      do i = 1, 9
        wide(i, j, k) = i + 10*j + 100*k
      end do
    end do
  end do
  ! What a variable held before is freed.
  do i = 1, 3
    call run%begin(double, [given("c", wide(2:9:2, 8:1:-2, 2:3))])
  end do
  call run%step()
  back = 0
  call run%get("c", back(2:9:2, 1:8:2, 2:3))
  call check(all(nint(back(2:9:2, 1:8:2, 2:3)) == nint(2*wide(2:9:2, 8:1:-2, 2:3))) .and. count(nint(back) /= 0) == 32)

  call kinds%compile("stencil kinds { in n: int; in wet: bool; out m: int; out dry: bool; m = 2*n; dry = !wet }", "kinds.stn")
  call kinds%set_device("cpu")
  whole = reshape([(i, i = 1, size(whole))], shape(whole))
  is_wet = modulo(whole, 3) == 0
  call run%begin(kinds, [given("n", whole), given("wet", is_wet)])
  call run%step()
  call run%get("m", twice)
  call run%get("dry", is_dry)
  call check(all(twice == 2*whole) .and. all(is_dry .neqv. is_wet))

  ! What is wrong is told, and a run that was begun stays.
  call run%put("n", single, ierr, message)
  print '(i0, 1x, a)', ierr, message(:index(message, ",") - 1)
  call run%begin(double, [given("c", 1.0_c_double)], ierr=ierr, message=message)
  print '(i0, 1x, a)', ierr, message(:index(message, ",") - 1)
  call run%begin(double, [given("d", wide)], ierr=ierr, message=message)
  print '(i0, 1x, a)', ierr, message(:index(message, new_line("a")) - 1)
  call run%get("m", twice)
  call run%free()
  call double%free()
  call kinds%free()

contains

  subroutine check(is_right)
    logical, intent(in) :: is_right
    if (.not. is_right) error stop "numbers are wrong"
  end subroutine
end program
