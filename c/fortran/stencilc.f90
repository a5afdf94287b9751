! libstencilc from Fortran: stencils and programs that are compiled when a program runs.
!
! Compile this file with the program, and link it with libstencilc: gfortran -c c/fortran/stencilc.f90. What each procedure does is said in
! c/include/stencilc.h, by the name with `stencilc_` before it.
!
! Arrays are of type real(c_double), real(c_float), integer(c_int32_t) or logical(c_bool). Their axes are those of Fortran, (i, j, k), i fastest; over
! a mesh (parts, slots, elements, levels), of which a field has some. Whatever is wrong is a status in `ierr` and a text in `message`, of
! several lines where there is a help; without `ierr` the program ends with that text. Texts say shapes as C does, the slowest axis first.
!
! What a variable held before, begin, load, compile, bind, make, read and resume free; nothing else does, but `free`.
module stencilc
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  private
  public :: stencilc_array, stencilc_stencil, stencilc_call, stencilc_mesh, stencilc_run, field, given

  integer(c_int32_t), parameter, public :: stencilc_f64 = 1, stencilc_f32 = 2, stencilc_i32 = 3, stencilc_bool = 4
  integer(c_int32_t), parameter, public :: stencilc_read = 1, stencilc_write = 2, stencilc_update = 3, stencilc_host = -1

  !> An array with its name, as `field` and `given` make it.
  type :: stencilc_array
    private
    character(len=:), allocatable :: name
    !> The numbers, if they were copied.
    integer(c_int8_t), allocatable :: bytes(:)
    type(c_ptr) :: data = c_null_ptr
    integer(c_int32_t) :: element = 0, role = 0, device = stencilc_host, axes = 0
    integer(c_int64_t) :: shape(4) = 0, strides(4) = 0
  end type

  !> A stencil or program of a text.
  type :: stencilc_stencil
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: load, compile
    procedure, private :: set_real64, set_integer, set_logical
    !> Sets a parameter: a real(c_double), an integer or a logical.
    generic :: set => set_real64, set_integer, set_logical
    procedure :: set_precision, set_device, set_devices, set_levels, set_options
    procedure :: free => free_stencil
  end type

  !> A stencil that is bound to arrays.
  type :: stencilc_call
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: bind => bind_call
    procedure :: lend => lend_call
    procedure :: run => run_call
    procedure :: start => start_call
    procedure :: wait => wait_call
    procedure :: free => free_call
  end type

  !> A mesh.
  type :: stencilc_mesh
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: read => read_mesh
    procedure :: make => make_mesh
    procedure :: size => size_of_set
    procedure :: free => free_mesh
  end type

  !> A program that was begun, with its fields.
  type :: stencilc_run
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: begin => begin_run
    procedure :: resume => resume_run
    procedure :: step => step_run
    procedure :: progress => progress_run
    procedure :: wait => wait_run
    procedure, private :: get_real64, get_real32, get_integer, get_logical
    !> Copies what a field holds into an array, or a section of one.
    generic :: get => get_real64, get_real32, get_integer, get_logical
    procedure, private :: put_real64, put_real32, put_integer, put_logical
    !> Gives a field other numbers.
    generic :: put => put_real64, put_real32, put_integer, put_logical
    procedure :: number => number_run
    procedure :: save => save_run
    procedure :: free => free_run
  end type

  !> An array that a stencil is bound to, with the name of its field: `field("t", t)`, sections included. Its address is kept, so it has to be
  !> there, with the attribute `target`, as long as the call; a component of an array of a derived type, as `cells%t`, is no such array, since
  !> compilers pass a copy of it. `role` is stencilc_read and so on, if it is not what the field is declared for; `device` is the number of the GPU
  !> where it lies.
  interface field
    module procedure field_real64, field_real32, field_integer, field_logical
  end interface

  !> Numbers for a run or a mesh, with the name of what they are: `given("t", t)`. They are copied at once, so any expression will do.
  interface given
    module procedure given_real64, given_real32, given_integer, given_logical
  end interface

  !> As C lays them out.
  type, bind(c) :: c_array
    integer(c_size_t) :: size
    type(c_ptr) :: name, data
    integer(c_int32_t) :: element, role, device, axes
    integer(c_int64_t) :: shape(4), strides(4)
  end type

  !> Names of arrays, as C reads them, and what is told of the arrays.
  type :: told
    character(kind=c_char), allocatable :: names(:, :)
    type(c_array), allocatable :: arrays(:)
  end type

  interface
    function c_message() bind(c, name="stencilc_message")
      import :: c_ptr
      type(c_ptr) :: c_message
    end function
    function c_strlen(text) bind(c, name="strlen")
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: c_strlen
    end function
    function c_compile(source, name, stencil, out) bind(c, name="stencilc_compile")
      import :: c_ptr, c_char, c_int
      character(kind=c_char), intent(in) :: source(*), name(*)
      type(c_ptr), value :: stencil
      type(c_ptr), intent(out) :: out
      integer(c_int) :: c_compile
    end function
    function c_load(file, stencil, out) bind(c, name="stencilc_load")
      import :: c_ptr, c_char, c_int
      character(kind=c_char), intent(in) :: file(*)
      type(c_ptr), value :: stencil
      type(c_ptr), intent(out) :: out
      integer(c_int) :: c_load
    end function
    function c_set_real(stencil, name, value) bind(c, name="stencilc_set_real")
      import :: c_ptr, c_char, c_int, c_double
      type(c_ptr), value :: stencil
      character(kind=c_char), intent(in) :: name(*)
      real(c_double), value :: value
      integer(c_int) :: c_set_real
    end function
    function c_set_int(stencil, name, value) bind(c, name="stencilc_set_int")
      import :: c_ptr, c_char, c_int, c_int32_t
      type(c_ptr), value :: stencil
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int32_t), value :: value
      integer(c_int) :: c_set_int
    end function
    function c_set_bool(stencil, name, value) bind(c, name="stencilc_set_bool")
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: stencil
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: value
      integer(c_int) :: c_set_bool
    end function
    function c_set_precision(stencil, element) bind(c, name="stencilc_set_precision")
      import :: c_ptr, c_int, c_int32_t
      type(c_ptr), value :: stencil
      integer(c_int32_t), value :: element
      integer(c_int) :: c_set_precision
    end function
    function c_set_device(stencil, device) bind(c, name="stencilc_set_device")
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: stencil
      character(kind=c_char), intent(in) :: device(*)
      integer(c_int) :: c_set_device
    end function
    function c_set_options(stencil, options) bind(c, name="stencilc_set_options")
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: stencil
      character(kind=c_char), intent(in) :: options(*)
      integer(c_int) :: c_set_options
    end function
    function c_set_devices(stencil, count) bind(c, name="stencilc_set_devices")
      import :: c_ptr, c_int, c_size_t
      type(c_ptr), value :: stencil
      integer(c_size_t), value :: count
      integer(c_int) :: c_set_devices
    end function
    function c_set_levels(stencil, levels) bind(c, name="stencilc_set_levels")
      import :: c_ptr, c_int, c_size_t
      type(c_ptr), value :: stencil
      integer(c_size_t), value :: levels
      integer(c_int) :: c_set_levels
    end function
    function c_free(stencil) bind(c, name="stencilc_free")
      import :: c_ptr, c_int
      type(c_ptr), value :: stencil
      integer(c_int) :: c_free
    end function
    function c_bind(stencil, arrays, count, out) bind(c, name="stencilc_bind")
      import :: c_ptr, c_int, c_size_t, c_array
      type(c_ptr), value :: stencil
      type(c_array), intent(in) :: arrays(*)
      integer(c_size_t), value :: count
      type(c_ptr), intent(out) :: out
      integer(c_int) :: c_bind
    end function
    function c_lend(call, arrays, count) bind(c, name="stencilc_lend")
      import :: c_ptr, c_int, c_size_t, c_array
      type(c_ptr), value :: call
      type(c_array), intent(in) :: arrays(*)
      integer(c_size_t), value :: count
      integer(c_int) :: c_lend
    end function
    function c_run(call) bind(c, name="stencilc_run")
      import :: c_ptr, c_int
      type(c_ptr), value :: call
      integer(c_int) :: c_run
    end function
    function c_start(call, stream) bind(c, name="stencilc_start")
      import :: c_ptr, c_int
      type(c_ptr), value :: call, stream
      integer(c_int) :: c_start
    end function
    function c_wait(call) bind(c, name="stencilc_wait")
      import :: c_ptr, c_int
      type(c_ptr), value :: call
      integer(c_int) :: c_wait
    end function
    function c_free_call(call) bind(c, name="stencilc_free_call")
      import :: c_ptr, c_int
      type(c_ptr), value :: call
      integer(c_int) :: c_free_call
    end function
    function c_mesh_read(file, out) bind(c, name="stencilc_mesh_read")
      import :: c_ptr, c_char, c_int
      character(kind=c_char), intent(in) :: file(*)
      type(c_ptr), intent(out) :: out
      integer(c_int) :: c_mesh_read
    end function
    function c_mesh_make(arrays, count, first, out) bind(c, name="stencilc_mesh_make")
      import :: c_ptr, c_int, c_size_t, c_int32_t, c_array
      type(c_array), intent(in) :: arrays(*)
      integer(c_size_t), value :: count
      integer(c_int32_t), value :: first
      type(c_ptr), intent(out) :: out
      integer(c_int) :: c_mesh_make
    end function
    function c_mesh_size(mesh, set, size) bind(c, name="stencilc_mesh_size")
      import :: c_ptr, c_char, c_int, c_size_t
      type(c_ptr), value :: mesh
      character(kind=c_char), intent(in) :: set(*)
      integer(c_size_t), intent(out) :: size
      integer(c_int) :: c_mesh_size
    end function
    function c_mesh_free(mesh) bind(c, name="stencilc_mesh_free")
      import :: c_ptr, c_int
      type(c_ptr), value :: mesh
      integer(c_int) :: c_mesh_free
    end function
    function c_run_begin(stencil, mesh, arrays, count, out) bind(c, name="stencilc_run_begin")
      import :: c_ptr, c_int, c_size_t, c_array
      type(c_ptr), value :: stencil, mesh
      type(c_array), intent(in) :: arrays(*)
      integer(c_size_t), value :: count
      type(c_ptr), intent(out) :: out
      integer(c_int) :: c_run_begin
    end function
    function c_run_resume(stencil, mesh, file, out) bind(c, name="stencilc_run_resume")
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: stencil, mesh
      character(kind=c_char), intent(in) :: file(*)
      type(c_ptr), intent(out) :: out
      integer(c_int) :: c_run_resume
    end function
    function c_run_step(run, times, done) bind(c, name="stencilc_run_step")
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: run
      integer(c_int64_t), value :: times
      integer(c_int64_t), intent(out) :: done
      integer(c_int) :: c_run_step
    end function
    function c_run_progress(run, done, total) bind(c, name="stencilc_run_progress")
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: run
      integer(c_int64_t), intent(out) :: done, total
      integer(c_int) :: c_run_progress
    end function
    function c_run_wait(run) bind(c, name="stencilc_run_wait")
      import :: c_ptr, c_int
      type(c_ptr), value :: run
      integer(c_int) :: c_run_wait
    end function
    function c_run_get(run, array) bind(c, name="stencilc_run_get")
      import :: c_ptr, c_int, c_array
      type(c_ptr), value :: run
      type(c_array), intent(in) :: array
      integer(c_int) :: c_run_get
    end function
    function c_run_put(run, array) bind(c, name="stencilc_run_put")
      import :: c_ptr, c_int, c_array
      type(c_ptr), value :: run
      type(c_array), intent(in) :: array
      integer(c_int) :: c_run_put
    end function
    function c_run_number(run, name, value) bind(c, name="stencilc_run_number")
      import :: c_ptr, c_char, c_int, c_double
      type(c_ptr), value :: run
      character(kind=c_char), intent(in) :: name(*)
      real(c_double), intent(out) :: value
      integer(c_int) :: c_run_number
    end function
    function c_run_save(run, file) bind(c, name="stencilc_run_save")
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: run
      character(kind=c_char), intent(in) :: file(*)
      integer(c_int) :: c_run_save
    end function
    function c_run_free(run) bind(c, name="stencilc_run_free")
      import :: c_ptr, c_int
      type(c_ptr), value :: run
      integer(c_int) :: c_run_free
    end function
  end interface

contains

  !> A text as C has it. Blanks at its end are none of it.
  pure function in_c(text)
    character(len=*), intent(in) :: text
    character(kind=c_char, len=len_trim(text) + 1) :: in_c
    in_c = trim(text) // c_null_char
  end function

  !> Tells what came of a call: in `ierr` and `message`, or by ending the program where it is wrong and nobody asked.
  subroutine tell(status, ierr, message)
    integer(c_int), intent(in) :: status
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    type(c_ptr) :: at
    character(kind=c_char), pointer :: letters(:)
    character(len=:), allocatable :: said
    integer :: n
    if (present(ierr)) ierr = int(status)
    if (present(message)) message = ""
    if (status == 0) return
    at = c_message()
    call c_f_pointer(at, letters, [c_strlen(at)])
    allocate (character(len=size(letters)) :: said)
    do n = 1, size(letters)
      said(n:n) = letters(n)
    end do
    if (present(message)) message = said
    if (present(ierr)) return
    write (error_unit, "(a)") said
    error stop 1
  end subroutine

  !> What C is told of arrays. The result is kept until the call has returned.
  subroutine tell_arrays(arrays, own)
    type(stencilc_array), intent(in), target :: arrays(:)
    type(told), intent(inout), target :: own
    type(c_ptr) :: at
    integer :: longest, n, letter
    longest = 0
    do n = 1, size(arrays)
      if (allocated(arrays(n)%name)) longest = max(longest, len(arrays(n)%name))
    end do
    allocate (own%names(longest + 1, size(arrays)), own%arrays(size(arrays)))
    own%names = c_null_char
    do n = 1, size(arrays)
      if (allocated(arrays(n)%name)) then
        do letter = 1, len(arrays(n)%name)
          own%names(letter, n) = arrays(n)%name(letter:letter)
        end do
      end if
      at = arrays(n)%data
      if (allocated(arrays(n)%bytes)) then
        if (size(arrays(n)%bytes) > 0) at = c_loc(arrays(n)%bytes)
      end if
      own%arrays(n) = c_array(c_sizeof(own%arrays(n)), c_loc(own%names(1, n)), at, arrays(n)%element, arrays(n)%role, &
                              arrays(n)%device, arrays(n)%axes, arrays(n)%shape, arrays(n)%strides)
    end do
  end subroutine

  !> An array with its first elements along each axis: where it begins, and how far these are apart.
  function made(name, element, bytes, extents, first, next, role, device)
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(in) :: element
    integer, intent(in) :: bytes
    integer(c_int64_t), intent(in) :: extents(:)
    type(c_ptr), intent(in) :: first, next(:)
    integer(c_int32_t), intent(in), optional :: role, device
    type(stencilc_array) :: made
    integer :: axis, axes
    axes = size(extents)
    made%name = trim(name)
    made%element = element
    made%axes = int(axes, c_int32_t)
    made%data = first
    if (present(role)) made%role = role
    if (present(device)) made%device = device
    do axis = 1, axes
      made%shape(axes + 1 - axis) = extents(axis)
      made%strides(axes + 1 - axis) = (transfer(next(axis), 0_c_intptr_t) - transfer(first, 0_c_intptr_t)) / bytes
      ! Of an axis with one element the distance says nothing.
      if (extents(axis) < 2) made%strides(axes + 1 - axis) = 1
    end do
  end function

  function field_real64(name, array, role, device) result(own)
    character(len=*), intent(in) :: name
    real(c_double), intent(inout), target :: array(..)
    integer(c_int32_t), intent(in), optional :: role, device
    type(stencilc_array) :: own
    type(c_ptr) :: at, next(rank(array))
    ! Some compilers count copies that they pass from 0.
    integer(c_int64_t) :: first(rank(array)), second(rank(array))
    at = c_null_ptr
    next = c_null_ptr
    select rank (array)
    rank (1)
      if (size(array, kind=c_int64_t) > 0) then
        first = lbound(array, kind=c_int64_t)
        second = min(first + 1, ubound(array, kind=c_int64_t))
        at = c_loc(array(first(1)))
        next(1) = c_loc(array(second(1)))
      end if
    rank (2)
      if (size(array, kind=c_int64_t) > 0) then
        first = lbound(array, kind=c_int64_t)
        second = min(first + 1, ubound(array, kind=c_int64_t))
        at = c_loc(array(first(1), first(2)))
        next(1) = c_loc(array(second(1), first(2)))
        next(2) = c_loc(array(first(1), second(2)))
      end if
    rank (3)
      if (size(array, kind=c_int64_t) > 0) then
        first = lbound(array, kind=c_int64_t)
        second = min(first + 1, ubound(array, kind=c_int64_t))
        at = c_loc(array(first(1), first(2), first(3)))
        next(1) = c_loc(array(second(1), first(2), first(3)))
        next(2) = c_loc(array(first(1), second(2), first(3)))
        next(3) = c_loc(array(first(1), first(2), second(3)))
      end if
    rank (4)
      if (size(array, kind=c_int64_t) > 0) then
        first = lbound(array, kind=c_int64_t)
        second = min(first + 1, ubound(array, kind=c_int64_t))
        at = c_loc(array(first(1), first(2), first(3), first(4)))
        next(1) = c_loc(array(second(1), first(2), first(3), first(4)))
        next(2) = c_loc(array(first(1), second(2), first(3), first(4)))
        next(3) = c_loc(array(first(1), first(2), second(3), first(4)))
        next(4) = c_loc(array(first(1), first(2), first(3), second(4)))
      end if
    end select
    own = made(name, stencilc_f64, 8, shape(array, kind=c_int64_t), at, next, role, device)
  end function

  function field_real32(name, array, role, device) result(own)
    character(len=*), intent(in) :: name
    real(c_float), intent(inout), target :: array(..)
    integer(c_int32_t), intent(in), optional :: role, device
    type(stencilc_array) :: own
    type(c_ptr) :: at, next(rank(array))
    ! Some compilers count copies that they pass from 0.
    integer(c_int64_t) :: first(rank(array)), second(rank(array))
    at = c_null_ptr
    next = c_null_ptr
    select rank (array)
    rank (1)
      if (size(array, kind=c_int64_t) > 0) then
        first = lbound(array, kind=c_int64_t)
        second = min(first + 1, ubound(array, kind=c_int64_t))
        at = c_loc(array(first(1)))
        next(1) = c_loc(array(second(1)))
      end if
    rank (2)
      if (size(array, kind=c_int64_t) > 0) then
        first = lbound(array, kind=c_int64_t)
        second = min(first + 1, ubound(array, kind=c_int64_t))
        at = c_loc(array(first(1), first(2)))
        next(1) = c_loc(array(second(1), first(2)))
        next(2) = c_loc(array(first(1), second(2)))
      end if
    rank (3)
      if (size(array, kind=c_int64_t) > 0) then
        first = lbound(array, kind=c_int64_t)
        second = min(first + 1, ubound(array, kind=c_int64_t))
        at = c_loc(array(first(1), first(2), first(3)))
        next(1) = c_loc(array(second(1), first(2), first(3)))
        next(2) = c_loc(array(first(1), second(2), first(3)))
        next(3) = c_loc(array(first(1), first(2), second(3)))
      end if
    rank (4)
      if (size(array, kind=c_int64_t) > 0) then
        first = lbound(array, kind=c_int64_t)
        second = min(first + 1, ubound(array, kind=c_int64_t))
        at = c_loc(array(first(1), first(2), first(3), first(4)))
        next(1) = c_loc(array(second(1), first(2), first(3), first(4)))
        next(2) = c_loc(array(first(1), second(2), first(3), first(4)))
        next(3) = c_loc(array(first(1), first(2), second(3), first(4)))
        next(4) = c_loc(array(first(1), first(2), first(3), second(4)))
      end if
    end select
    own = made(name, stencilc_f32, 4, shape(array, kind=c_int64_t), at, next, role, device)
  end function

  function field_integer(name, array, role, device) result(own)
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(inout), target :: array(..)
    integer(c_int32_t), intent(in), optional :: role, device
    type(stencilc_array) :: own
    type(c_ptr) :: at, next(rank(array))
    ! Some compilers count copies that they pass from 0.
    integer(c_int64_t) :: first(rank(array)), second(rank(array))
    at = c_null_ptr
    next = c_null_ptr
    select rank (array)
    rank (1)
      if (size(array, kind=c_int64_t) > 0) then
        first = lbound(array, kind=c_int64_t)
        second = min(first + 1, ubound(array, kind=c_int64_t))
        at = c_loc(array(first(1)))
        next(1) = c_loc(array(second(1)))
      end if
    rank (2)
      if (size(array, kind=c_int64_t) > 0) then
        first = lbound(array, kind=c_int64_t)
        second = min(first + 1, ubound(array, kind=c_int64_t))
        at = c_loc(array(first(1), first(2)))
        next(1) = c_loc(array(second(1), first(2)))
        next(2) = c_loc(array(first(1), second(2)))
      end if
    rank (3)
      if (size(array, kind=c_int64_t) > 0) then
        first = lbound(array, kind=c_int64_t)
        second = min(first + 1, ubound(array, kind=c_int64_t))
        at = c_loc(array(first(1), first(2), first(3)))
        next(1) = c_loc(array(second(1), first(2), first(3)))
        next(2) = c_loc(array(first(1), second(2), first(3)))
        next(3) = c_loc(array(first(1), first(2), second(3)))
      end if
    rank (4)
      if (size(array, kind=c_int64_t) > 0) then
        first = lbound(array, kind=c_int64_t)
        second = min(first + 1, ubound(array, kind=c_int64_t))
        at = c_loc(array(first(1), first(2), first(3), first(4)))
        next(1) = c_loc(array(second(1), first(2), first(3), first(4)))
        next(2) = c_loc(array(first(1), second(2), first(3), first(4)))
        next(3) = c_loc(array(first(1), first(2), second(3), first(4)))
        next(4) = c_loc(array(first(1), first(2), first(3), second(4)))
      end if
    end select
    own = made(name, stencilc_i32, 4, shape(array, kind=c_int64_t), at, next, role, device)
  end function

  function field_logical(name, array, role, device) result(own)
    character(len=*), intent(in) :: name
    logical(c_bool), intent(inout), target :: array(..)
    integer(c_int32_t), intent(in), optional :: role, device
    type(stencilc_array) :: own
    type(c_ptr) :: at, next(rank(array))
    ! Some compilers count copies that they pass from 0.
    integer(c_int64_t) :: first(rank(array)), second(rank(array))
    at = c_null_ptr
    next = c_null_ptr
    select rank (array)
    rank (1)
      if (size(array, kind=c_int64_t) > 0) then
        first = lbound(array, kind=c_int64_t)
        second = min(first + 1, ubound(array, kind=c_int64_t))
        at = c_loc(array(first(1)))
        next(1) = c_loc(array(second(1)))
      end if
    rank (2)
      if (size(array, kind=c_int64_t) > 0) then
        first = lbound(array, kind=c_int64_t)
        second = min(first + 1, ubound(array, kind=c_int64_t))
        at = c_loc(array(first(1), first(2)))
        next(1) = c_loc(array(second(1), first(2)))
        next(2) = c_loc(array(first(1), second(2)))
      end if
    rank (3)
      if (size(array, kind=c_int64_t) > 0) then
        first = lbound(array, kind=c_int64_t)
        second = min(first + 1, ubound(array, kind=c_int64_t))
        at = c_loc(array(first(1), first(2), first(3)))
        next(1) = c_loc(array(second(1), first(2), first(3)))
        next(2) = c_loc(array(first(1), second(2), first(3)))
        next(3) = c_loc(array(first(1), first(2), second(3)))
      end if
    rank (4)
      if (size(array, kind=c_int64_t) > 0) then
        first = lbound(array, kind=c_int64_t)
        second = min(first + 1, ubound(array, kind=c_int64_t))
        at = c_loc(array(first(1), first(2), first(3), first(4)))
        next(1) = c_loc(array(second(1), first(2), first(3), first(4)))
        next(2) = c_loc(array(first(1), second(2), first(3), first(4)))
        next(3) = c_loc(array(first(1), first(2), second(3), first(4)))
        next(4) = c_loc(array(first(1), first(2), first(3), second(4)))
      end if
    end select
    own = made(name, stencilc_bool, 1, shape(array, kind=c_int64_t), at, next, role, device)
  end function

  function given_real64(name, array) result(own)
    character(len=*), intent(in) :: name
    real(c_double), intent(in) :: array(..)
    type(stencilc_array) :: own
    select rank (array)
    rank (0)
      own = dense(name, stencilc_f64, [1_c_int64_t], transfer([array], [0_c_int8_t]))
    rank (1)
      own = dense(name, stencilc_f64, shape(array, kind=c_int64_t), transfer(pack(array, .true.), [0_c_int8_t]))
    rank (2)
      own = dense(name, stencilc_f64, shape(array, kind=c_int64_t), transfer(pack(array, .true.), [0_c_int8_t]))
    rank (3)
      own = dense(name, stencilc_f64, shape(array, kind=c_int64_t), transfer(pack(array, .true.), [0_c_int8_t]))
    rank (4)
      own = dense(name, stencilc_f64, shape(array, kind=c_int64_t), transfer(pack(array, .true.), [0_c_int8_t]))
    rank default
      own = dense(name, stencilc_f64, [integer(c_int64_t) ::], [integer(c_int8_t) ::])
    end select
  end function

  function given_real32(name, array) result(own)
    character(len=*), intent(in) :: name
    real(c_float), intent(in) :: array(..)
    type(stencilc_array) :: own
    select rank (array)
    rank (0)
      own = dense(name, stencilc_f32, [1_c_int64_t], transfer([array], [0_c_int8_t]))
    rank (1)
      own = dense(name, stencilc_f32, shape(array, kind=c_int64_t), transfer(pack(array, .true.), [0_c_int8_t]))
    rank (2)
      own = dense(name, stencilc_f32, shape(array, kind=c_int64_t), transfer(pack(array, .true.), [0_c_int8_t]))
    rank (3)
      own = dense(name, stencilc_f32, shape(array, kind=c_int64_t), transfer(pack(array, .true.), [0_c_int8_t]))
    rank (4)
      own = dense(name, stencilc_f32, shape(array, kind=c_int64_t), transfer(pack(array, .true.), [0_c_int8_t]))
    rank default
      own = dense(name, stencilc_f32, [integer(c_int64_t) ::], [integer(c_int8_t) ::])
    end select
  end function

  function given_integer(name, array) result(own)
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(in) :: array(..)
    type(stencilc_array) :: own
    select rank (array)
    rank (0)
      own = dense(name, stencilc_i32, [1_c_int64_t], transfer([array], [0_c_int8_t]))
    rank (1)
      own = dense(name, stencilc_i32, shape(array, kind=c_int64_t), transfer(pack(array, .true.), [0_c_int8_t]))
    rank (2)
      own = dense(name, stencilc_i32, shape(array, kind=c_int64_t), transfer(pack(array, .true.), [0_c_int8_t]))
    rank (3)
      own = dense(name, stencilc_i32, shape(array, kind=c_int64_t), transfer(pack(array, .true.), [0_c_int8_t]))
    rank (4)
      own = dense(name, stencilc_i32, shape(array, kind=c_int64_t), transfer(pack(array, .true.), [0_c_int8_t]))
    rank default
      own = dense(name, stencilc_i32, [integer(c_int64_t) ::], [integer(c_int8_t) ::])
    end select
  end function

  function given_logical(name, array) result(own)
    character(len=*), intent(in) :: name
    logical(c_bool), intent(in) :: array(..)
    type(stencilc_array) :: own
    select rank (array)
    rank (0)
      own = dense(name, stencilc_bool, [1_c_int64_t], transfer([array], [0_c_int8_t]))
    rank (1)
      own = dense(name, stencilc_bool, shape(array, kind=c_int64_t), transfer(pack(array, .true.), [0_c_int8_t]))
    rank (2)
      own = dense(name, stencilc_bool, shape(array, kind=c_int64_t), transfer(pack(array, .true.), [0_c_int8_t]))
    rank (3)
      own = dense(name, stencilc_bool, shape(array, kind=c_int64_t), transfer(pack(array, .true.), [0_c_int8_t]))
    rank (4)
      own = dense(name, stencilc_bool, shape(array, kind=c_int64_t), transfer(pack(array, .true.), [0_c_int8_t]))
    rank default
      own = dense(name, stencilc_bool, [integer(c_int64_t) ::], [integer(c_int8_t) ::])
    end select
  end function

  !> Numbers that were copied: those of an array without room between them. There is none with more than 4 axes.
  function dense(name, element, extents, bytes)
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(in) :: element
    integer(c_int64_t), intent(in) :: extents(:)
    integer(c_int8_t), intent(in) :: bytes(:)
    type(stencilc_array) :: dense
    integer :: axes
    axes = size(extents)
    dense%name = trim(name)
    dense%element = element
    dense%axes = int(axes, c_int32_t)
    dense%shape(:axes) = extents(axes:1:-1)
    allocate (dense%bytes, source=bytes)
  end function

  subroutine get_real64(self, name, array, ierr, message)
    class(stencilc_run), intent(in) :: self
    character(len=*), intent(in) :: name
    real(c_double), intent(inout), target :: array(..)
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call get_run(self, field(name, array), ierr, message)
  end subroutine

  subroutine put_real64(self, name, array, ierr, message)
    class(stencilc_run), intent(inout) :: self
    character(len=*), intent(in) :: name
    real(c_double), intent(in) :: array(..)
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call put_run(self, given(name, array), ierr, message)
  end subroutine

  subroutine get_real32(self, name, array, ierr, message)
    class(stencilc_run), intent(in) :: self
    character(len=*), intent(in) :: name
    real(c_float), intent(inout), target :: array(..)
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call get_run(self, field(name, array), ierr, message)
  end subroutine

  subroutine put_real32(self, name, array, ierr, message)
    class(stencilc_run), intent(inout) :: self
    character(len=*), intent(in) :: name
    real(c_float), intent(in) :: array(..)
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call put_run(self, given(name, array), ierr, message)
  end subroutine

  subroutine get_integer(self, name, array, ierr, message)
    class(stencilc_run), intent(in) :: self
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(inout), target :: array(..)
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call get_run(self, field(name, array), ierr, message)
  end subroutine

  subroutine put_integer(self, name, array, ierr, message)
    class(stencilc_run), intent(inout) :: self
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(in) :: array(..)
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call put_run(self, given(name, array), ierr, message)
  end subroutine

  subroutine get_logical(self, name, array, ierr, message)
    class(stencilc_run), intent(in) :: self
    character(len=*), intent(in) :: name
    logical(c_bool), intent(inout), target :: array(..)
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call get_run(self, field(name, array), ierr, message)
  end subroutine

  subroutine put_logical(self, name, array, ierr, message)
    class(stencilc_run), intent(inout) :: self
    character(len=*), intent(in) :: name
    logical(c_bool), intent(in) :: array(..)
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call put_run(self, given(name, array), ierr, message)
  end subroutine

  !> The name of a stencil or program, or none.
  subroutine name_of(stencil, name, at)
    character(len=*), intent(in), optional :: stencil
    character(kind=c_char), allocatable, intent(inout), target :: name(:)
    type(c_ptr), intent(out) :: at
    integer :: n
    at = c_null_ptr
    if (.not. present(stencil)) return
    allocate (name(len_trim(stencil) + 1))
    do n = 1, len_trim(stencil)
      name(n) = stencil(n:n)
    end do
    name(len_trim(stencil) + 1) = c_null_char
    at = c_loc(name)
  end subroutine

  !> Compiles a file, or what comes along; `name` says which of its stencils and programs is meant.
  subroutine load(self, file, name, ierr, message)
    class(stencilc_stencil), intent(inout) :: self
    character(len=*), intent(in) :: file
    character(len=*), intent(in), optional :: name
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    type(c_ptr) :: new
    integer(c_int) :: status, freed
    character(kind=c_char), allocatable, target :: own(:)
    type(c_ptr) :: at
    call name_of(name, own, at)
    status = c_load(in_c(file), at, new)
    if (status == 0) then
      freed = c_free(self%handle)
      self%handle = new
    end if
    call tell(status, ierr, message)
  end subroutine

  !> Compiles a text, which messages call by `called`; `name` says which of its stencils and programs is meant.
  subroutine compile(self, source, called, name, ierr, message)
    class(stencilc_stencil), intent(inout) :: self
    character(len=*), intent(in) :: source, called
    character(len=*), intent(in), optional :: name
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    type(c_ptr) :: new
    integer(c_int) :: status, freed
    character(kind=c_char), allocatable, target :: own(:)
    type(c_ptr) :: at
    call name_of(name, own, at)
    status = c_compile(in_c(source), in_c(called), at, new)
    if (status == 0) then
      freed = c_free(self%handle)
      self%handle = new
    end if
    call tell(status, ierr, message)
  end subroutine

  subroutine set_real64(self, name, value, ierr, message)
    class(stencilc_stencil), intent(inout) :: self
    character(len=*), intent(in) :: name
    real(c_double), intent(in) :: value
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call tell(c_set_real(self%handle, in_c(name), value), ierr, message)
  end subroutine

  subroutine set_integer(self, name, value, ierr, message)
    class(stencilc_stencil), intent(inout) :: self
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(in) :: value
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call tell(c_set_int(self%handle, in_c(name), value), ierr, message)
  end subroutine

  subroutine set_logical(self, name, value, ierr, message)
    class(stencilc_stencil), intent(inout) :: self
    character(len=*), intent(in) :: name
    logical, intent(in) :: value
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call tell(c_set_bool(self%handle, in_c(name), merge(1_c_int, 0_c_int, value)), ierr, message)
  end subroutine

  subroutine set_precision(self, element, ierr, message)
    class(stencilc_stencil), intent(inout) :: self
    integer(c_int32_t), intent(in) :: element
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call tell(c_set_precision(self%handle, element), ierr, message)
  end subroutine

  subroutine set_device(self, device, ierr, message)
    class(stencilc_stencil), intent(inout) :: self
    character(len=*), intent(in) :: device
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call tell(c_set_device(self%handle, in_c(device)), ierr, message)
  end subroutine

  subroutine set_devices(self, count, ierr, message)
    class(stencilc_stencil), intent(inout) :: self
    integer, intent(in) :: count
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call tell(c_set_devices(self%handle, int(max(count, 0), c_size_t)), ierr, message)
  end subroutine

  subroutine set_levels(self, levels, ierr, message)
    class(stencilc_stencil), intent(inout) :: self
    integer, intent(in) :: levels
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call tell(c_set_levels(self%handle, int(max(levels, 0), c_size_t)), ierr, message)
  end subroutine

  subroutine set_options(self, options, ierr, message)
    class(stencilc_stencil), intent(inout) :: self
    character(len=*), intent(in) :: options
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call tell(c_set_options(self%handle, in_c(options)), ierr, message)
  end subroutine

  !> Binds a stencil to arrays, which stay the caller's.
  subroutine bind_call(self, stencil, arrays, ierr, message)
    class(stencilc_call), intent(inout) :: self
    type(stencilc_stencil), intent(in) :: stencil
    type(stencilc_array), intent(in), target :: arrays(:)
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    type(c_ptr) :: new
    integer(c_int) :: status, freed
    type(told), target :: own
    call tell_arrays(arrays, own)
    status = c_bind(stencil%handle, own%arrays, size(arrays, kind=c_size_t), new)
    if (status == 0) then
      freed = c_free_call(self%handle)
      self%handle = new
    end if
    call tell(status, ierr, message)
  end subroutine

  !> Lends other arrays that lie as those did.
  subroutine lend_call(self, arrays, ierr, message)
    class(stencilc_call), intent(inout) :: self
    type(stencilc_array), intent(in), target :: arrays(:)
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    type(told), target :: own
    call tell_arrays(arrays, own)
    call tell(c_lend(self%handle, own%arrays, size(arrays, kind=c_size_t)), ierr, message)
  end subroutine

  !> Starts to compute in a `cudaStream_t`, or the default one.
  subroutine start_call(self, stream, ierr, message)
    class(stencilc_call), intent(inout) :: self
    type(c_ptr), intent(in), optional :: stream
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    type(c_ptr) :: own
    own = c_null_ptr
    if (present(stream)) own = stream
    call tell(c_start(self%handle, own), ierr, message)
  end subroutine

  subroutine read_mesh(self, file, ierr, message)
    class(stencilc_mesh), intent(inout) :: self
    character(len=*), intent(in) :: file
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    type(c_ptr) :: new
    integer(c_int) :: status, freed
    status = c_mesh_read(in_c(file), new)
    if (status == 0) then
      freed = c_mesh_free(self%handle)
      self%handle = new
    end if
    call tell(status, ierr, message)
  end subroutine

  !> Makes a mesh of arrays: `given("edge.cells -> cell", cells)` of shape (slots, edges), `given("area on cell", area)`. Elements are counted
  !> from 1, unless `first` is 0; the number before stands where there is no element.
  subroutine make_mesh(self, arrays, first, ierr, message)
    class(stencilc_mesh), intent(inout) :: self
    type(stencilc_array), intent(in), target :: arrays(:)
    integer, intent(in), optional :: first
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    type(c_ptr) :: new
    integer(c_int) :: status, freed
    type(told), target :: own
    integer(c_int32_t) :: from
    from = 1
    if (present(first)) from = int(first, c_int32_t)
    call tell_arrays(arrays, own)
    status = c_mesh_make(own%arrays, size(arrays, kind=c_size_t), from, new)
    if (status == 0) then
      freed = c_mesh_free(self%handle)
      self%handle = new
    end if
    call tell(status, ierr, message)
  end subroutine

  !> Says how many elements a set has.
  subroutine size_of_set(self, set, count, ierr, message)
    class(stencilc_mesh), intent(in) :: self
    character(len=*), intent(in) :: set
    integer, intent(out) :: count
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    integer(c_size_t) :: own
    own = 0
    call tell(c_mesh_size(self%handle, in_c(set), own), ierr, message)
    count = int(own)
  end subroutine

  !> Begins a program, over a mesh if it runs over one.
  subroutine begin_run(self, stencil, arrays, mesh, ierr, message)
    class(stencilc_run), intent(inout) :: self
    type(stencilc_stencil), intent(in) :: stencil
    type(stencilc_array), intent(in), target :: arrays(:)
    type(stencilc_mesh), intent(in), optional :: mesh
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    type(c_ptr) :: new
    integer(c_int) :: status, freed
    type(told), target :: own
    call tell_arrays(arrays, own)
    status = c_run_begin(stencil%handle, handle_of(mesh), own%arrays, size(arrays, kind=c_size_t), new)
    if (status == 0) then
      freed = c_run_free(self%handle)
      self%handle = new
    end if
    call tell(status, ierr, message)
  end subroutine

  function handle_of(mesh)
    type(stencilc_mesh), intent(in), optional :: mesh
    type(c_ptr) :: handle_of
    handle_of = c_null_ptr
    if (present(mesh)) handle_of = mesh%handle
  end function

  !> Goes on from a file that was saved.
  subroutine resume_run(self, stencil, file, mesh, ierr, message)
    class(stencilc_run), intent(inout) :: self
    type(stencilc_stencil), intent(in) :: stencil
    character(len=*), intent(in) :: file
    type(stencilc_mesh), intent(in), optional :: mesh
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    type(c_ptr) :: new
    integer(c_int) :: status, freed
    status = c_run_resume(stencil%handle, handle_of(mesh), in_c(file), new)
    if (status == 0) then
      freed = c_run_free(self%handle)
      self%handle = new
    end if
    call tell(status, ierr, message)
  end subroutine

  !> Goes on by so many steps, or to the end if nothing is said; `done` says how many there were.
  subroutine step_run(self, times, done, ierr, message)
    class(stencilc_run), intent(inout) :: self
    integer, intent(in), optional :: times
    integer, intent(out), optional :: done
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    integer(c_int64_t) :: steps, own
    steps = huge(steps)
    own = 0
    if (present(times)) steps = max(times, 0)
    call tell(c_run_step(self%handle, steps, own), ierr, message)
    if (present(done)) done = int(own)
  end subroutine

  !> Says how many steps were done, and how many there are in all.
  subroutine progress_run(self, done, total, ierr, message)
    class(stencilc_run), intent(in) :: self
    integer, intent(out) :: done, total
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    integer(c_int64_t) :: steps, all
    steps = 0
    all = 0
    call tell(c_run_progress(self%handle, steps, all), ierr, message)
    done = int(steps)
    total = int(all)
  end subroutine

  !> Copies what a field holds into an array.
  subroutine get_run(self, array, ierr, message)
    class(stencilc_run), intent(in) :: self
    type(stencilc_array), intent(in) :: array
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    type(stencilc_array), target :: one(1)
    type(told), target :: own
    one(1) = array
    call tell_arrays(one, own)
    call tell(c_run_get(self%handle, own%arrays(1)), ierr, message)
  end subroutine

  !> Gives a field other numbers.
  subroutine put_run(self, array, ierr, message)
    class(stencilc_run), intent(inout) :: self
    type(stencilc_array), intent(in) :: array
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    type(stencilc_array), target :: one(1)
    type(told), target :: own
    one(1) = array
    call tell_arrays(one, own)
    call tell(c_run_put(self%handle, own%arrays(1)), ierr, message)
  end subroutine

  !> Says what a number is now, such as what a reduction came to.
  subroutine number_run(self, name, value, ierr, message)
    class(stencilc_run), intent(in) :: self
    character(len=*), intent(in) :: name
    real(c_double), intent(out) :: value
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    value = 0
    call tell(c_run_number(self%handle, in_c(name), value), ierr, message)
  end subroutine

  subroutine save_run(self, file, ierr, message)
    class(stencilc_run), intent(in) :: self
    character(len=*), intent(in) :: file
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call tell(c_run_save(self%handle, in_c(file)), ierr, message)
  end subroutine

  !> Computes, and waits for it.
  subroutine run_call(self, ierr, message)
    class(stencilc_call), intent(inout) :: self
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call tell(c_run(self%handle), ierr, message)
  end subroutine

  !> Waits until all that was started is done.
  subroutine wait_call(self, ierr, message)
    class(stencilc_call), intent(inout) :: self
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call tell(c_wait(self%handle), ierr, message)
  end subroutine

  !> Waits until all is computed.
  subroutine wait_run(self, ierr, message)
    class(stencilc_run), intent(inout) :: self
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call tell(c_run_wait(self%handle), ierr, message)
  end subroutine

  subroutine free_stencil(self, ierr, message)
    class(stencilc_stencil), intent(inout) :: self
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call tell(c_free(self%handle), ierr, message)
    self%handle = c_null_ptr
  end subroutine

  subroutine free_call(self, ierr, message)
    class(stencilc_call), intent(inout) :: self
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call tell(c_free_call(self%handle), ierr, message)
    self%handle = c_null_ptr
  end subroutine

  subroutine free_mesh(self, ierr, message)
    class(stencilc_mesh), intent(inout) :: self
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call tell(c_mesh_free(self%handle), ierr, message)
    self%handle = c_null_ptr
  end subroutine

  subroutine free_run(self, ierr, message)
    class(stencilc_run), intent(inout) :: self
    integer, intent(out), optional :: ierr
    character(len=*), intent(out), optional :: message
    call tell(c_run_free(self%handle), ierr, message)
    self%handle = c_null_ptr
  end subroutine

end module
