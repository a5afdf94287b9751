! Runs a program on a grid and one over a mesh of the caller's own arrays, by libstencilc.
!
!     cargo build --release -p stencilc-c
!     gfortran c/fortran/stencilc.f90 examples/fortran/program.f90 -Ltarget/release -lstencilc -Wl,-rpath,target/release -o programs
program programs
  use, intrinsic :: iso_c_binding
  use stencilc
  implicit none
  integer, parameter :: cells = 8
  real(c_double) :: wide(40, 32, 1), t(32, 32, 1), heat(cells), conductivity(cells), most
  integer(c_int32_t) :: ends(2, cells)
  integer :: cell, done, total, ierr
  character(len=200) :: message
  type(stencilc_stencil) :: walls, spread
  type(stencilc_mesh) :: ring
  type(stencilc_run) :: run

  ! On a grid, from a section of a larger array.
  wide = 0
  wide(5:36, :, :) = 80
  call walls%load("heat", "heat_walls")
  call walls%set("wall", 20.0_c_double)
  call walls%set("steps", 300)
  call walls%set_device("cpu")
  call run%begin(walls, [given("t", wide(5:36, :, :))])
  call run%step(100)
  call run%get("t", t)
  call run%progress(done, total)
  print '(i0, a, i0, a, f6.2)', done, " of ", total, " steps: ", sum(t) / size(t)
  call run%free()

  ! Over a mesh: heat spreads along the edges of a ring. Elements are counted from 1.
  do cell = 1, cells
    ends(:, cell) = [cell, modulo(cell, cells) + 1]
  end do
  heat = 0
  heat(4) = 64
  conductivity = 0.25_c_double
  call ring%make([given("edge.cells -> cell", ends), given("set cell", cells)])
  call spread%compile(text(), "ring.stn", "spread")
  call spread%set("n", 100)
  call run%begin(spread, [given("heat", heat), given("conductivity", conductivity)], mesh=ring)
  call run%step()
  call run%get("heat", heat)
  call run%number("most", most)
  print '(2f9.4, l2)', heat(4), heat(8), abs(most - maxval(heat)) <= 0

  ! What is wrong is told.
  call run%get("heat", conductivity(:4), ierr, message)
  print '(i0, 1x, a)', ierr, trim(message)
  call run%free()
  call spread%free()
  call walls%free()
  call ring%free()

contains

  function text()
    character(len=:), allocatable :: text
    character(len=*), parameter :: line = new_line("a")
    text = "mesh ring { set edge, cell; map edge.cells -> cell[2] }" // line // &
           "stencil flux over ring.edge {" // line // &
           "  in heat on cell; in conductivity on edge; inc change on cell" // line // &
           "  let f = conductivity * (heat[cells.1] - heat[cells.0])" // line // &
           "  change[cells.0] += f" // line // &
           "  change[cells.1] -= f" // line // &
           "}" // line // &
           "stencil largest over ring.cell { in heat on cell; reduce most: max; most = heat }" // line // &
           "program spread over ring {" // line // &
           "  inout heat on cell; in conductivity on edge; out most: real on (); param n: int" // line // &
           "  repeat n { heat = flux(heat, conductivity, heat); most = largest(heat) }" // line // &
           "}" // line
  end function
end program
