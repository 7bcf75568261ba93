//! Counts, places and normals of sampled points.

use rtx_pinn::{
    Cuboid, Edge, Face, Geometry, Interval, Mask, PinnError, Points, Rectangle, Sampling,
};

const ALL: [Sampling; 3] = [Sampling::Random(1), Sampling::Halton, Sampling::Grid];

#[test]
fn interior_points_lie_inside() {
    let g = Rectangle::new([-1.0, 2.0], [1.0, 5.0]);
    for s in ALL {
        let p = g.sample(100, s).unwrap();
        assert_eq!((p.len(), p.dims()), (100, 2));
        assert!(p.iter().all(|x| g.contains(x)));
        let mean = p.iter().map(|x| x[1]).sum::<f64>() / 100.0;
        assert!((mean - 3.5).abs() < 0.3, "{s:?} {mean}");
    }
}

#[test]
fn faces_have_outward_normals() {
    let g = Rectangle::new([-1.0, 2.0], [1.0, 5.0]);
    for (edge, axis, at, sign) in [
        (Edge::Left, 0, -1.0, -1.0),
        (Edge::Right, 0, 1.0, 1.0),
        (Edge::Bottom, 1, 2.0, -1.0),
        (Edge::Top, 1, 5.0, 1.0),
    ] {
        for s in ALL {
            let p = g.face(edge.into(), 7, s).unwrap();
            assert_eq!(p.len(), 7);
            for (x, n) in p.iter().zip(p.normals().unwrap().chunks_exact(2)) {
                assert_eq!((x[axis], n[axis], n[1 - axis]), (at, sign, 0.0));
                assert!(g.contains(x));
            }
        }
    }
    assert_eq!(g.boundary(5, Sampling::Halton).unwrap().len(), 20);
}

#[test]
fn an_end_of_an_interval_is_one_point() {
    let p = Interval::new(0.0, 3.0)
        .face(Edge::Right.into(), 50, Sampling::Halton)
        .unwrap();
    assert_eq!(
        (p.coordinates(), p.normals().unwrap()),
        (&[3.0][..], &[1.0][..])
    );
}

#[test]
fn space_and_time() {
    let g = Rectangle::new([0.0, 0.0], [1.0, 1.0]).in_time(2.0, 4.0);
    assert_eq!((g.dims(), g.space_dims()), (3, 2));
    let start = g.initial(9, Sampling::Grid).unwrap();
    assert_eq!(start.len(), 9);
    assert!(start.iter().all(|x| x[2] == 2.0));
    assert_eq!(g.boundary(4, Sampling::Halton).unwrap().len(), 16);
    let none = Interval::new(0.0, 1.0).initial(3, Sampling::Grid);
    assert!(matches!(none, Err(PinnError::NoTime)));
    let l = g.lattice(&[2, 1, 3]).unwrap();
    assert_eq!(l.coordinates()[..6], [0.0, 0.5, 2.0, 0.0, 0.5, 3.0]);
}

#[test]
fn bounds_and_axes_are_checked() {
    assert!(matches!(
        Cuboid::new([0.0, 1.0], [1.0, 1.0]).sample(3, Sampling::Grid),
        Err(PinnError::Bounds { axis: 1, .. })
    ));
    assert!(matches!(
        Interval::new(0.0, 1.0).face(Face::upper(1), 3, Sampling::Grid),
        Err(PinnError::NoFace { axis: 1, dims: 1 })
    ));
    assert!(matches!(
        Points::new(2, vec![]),
        Err(PinnError::NoPoints { .. })
    ));
    let text = Points::new(2, vec![0.0, 1.0, f64::NAN, 0.0])
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("1 of 4") && text.contains("row 1, column 0"),
        "{text}"
    );
}

/// A disc on a grid: every outer face is found once, as many up as down.
#[test]
fn mask_faces() {
    let m = Mask::of(&[9, 11], &[0.5, 0.5], &[0.0, 0.0], |x| {
        (x[0] - 2.0).powi(2) + (x[1] - 2.5).powi(2) < 1.6 * 1.6
    })
    .unwrap();
    assert_eq!(m.points().unwrap().len(), m.len());
    let all = |f| m.face(f, usize::MAX, Sampling::Grid).unwrap();
    let (down, up) = (all(Face::lower(1)), all(Face::upper(1)));
    assert_eq!(down.len(), up.len());
    for (x, n) in up.iter().zip(up.normals().unwrap().chunks_exact(2)) {
        assert_eq!(n, [0.0, 1.0]);
        assert!(m.contains(&[x[0], x[1] - 0.1]) && !m.contains(&[x[0], x[1] + 0.1]));
    }
    for s in ALL {
        let p = m.sample(40, s).unwrap();
        // Cell centres cannot be more than the cells.
        let expected = if s == Sampling::Grid {
            m.len().min(40)
        } else {
            40
        };
        assert_eq!(p.len(), expected);
        assert!(p.iter().all(|x| m.contains(x)));
    }
    let some = m.face(Face::lower(0), 3, Sampling::Random(2)).unwrap();
    assert_eq!(some.len(), 3);
    let [lower, upper] = m.bounds()[0];
    assert!(lower < 0.6 && upper > 3.4);
}

#[test]
fn mask_arguments_are_checked() {
    assert!(matches!(
        Mask::new(&[2, 2], vec![false; 4], &[1.0, 1.0], &[0.0, 0.0]),
        Err(PinnError::NoPoints { .. })
    ));
    assert!(matches!(
        Mask::new(&[2, 2], vec![true; 3], &[1.0, 1.0], &[0.0, 0.0]),
        Err(PinnError::Dimensions {
            expected: 4,
            found: 3,
            ..
        })
    ));
    assert!(matches!(
        Mask::new(&[2], vec![true; 2], &[0.0], &[0.0]),
        Err(PinnError::Value { .. })
    ));
}
